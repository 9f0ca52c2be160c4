/* soak/mix.c - all scenes at once, for long: directors of every kind of thread run scenes in which
 * threads of every kind create, join, detach, wake, time out, sleep, lock, send and select, chosen
 * at random. A watchdog in a kernel thread of its own takes a director without progress for a lost
 * wake-up: the watchdog prints all threads and aborts. SOAK_SECONDS (600), SOAK_STALL (30: seconds
 * without progress), KB_TEST_SEED, SOAK_ONLY (a scene's name). */
#include "scenes.h"

#include <unistd.h>

enum { DIRECTORS = 8 };

struct director {
	struct actor actor;
	uint64_t rand;
	uint64_t rounds; /* by the director; read by the watchdog */
	const struct scene *scene;
};

static struct director directors[DIRECTORS];
static bool stop;

static struct scene *choose(uint64_t *rand)
{
	const char *only = getenv("SOAK_ONLY");
	unsigned w = (unsigned)cast_rand(rand, SCENE_WEIGHTS);

	for (unsigned i = 0; only && i < SCENES; i++)
		if (strcmp(only, scenes[i].name) == 0)
			return &scenes[i];
	for (unsigned i = 0;; i++) {
		if (w < scenes[i].weight)
			return &scenes[i];
		w -= scenes[i].weight;
	}
}

static void direct(struct actor *a)
{
	struct director *d = a->scene;

	while (!GET(stop)) {
		struct scene *s = choose(&d->rand);

		__atomic_store_n(&d->scene, s, __ATOMIC_RELEASE);
		s->play(&d->rand);
		ADD(s->rounds, 1);
		ADD(d->rounds, 1);
		errno = (int)(a->number + 1000); /* libc's own calls may have changed it */
		cast_check(a);
	}
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v ? strtoull(v, NULL, 10) : otherwise;
}

static void check_progress(uint64_t *seen, uint64_t *since, uint64_t now, uint64_t limit)
{
	for (unsigned i = 0; i < DIRECTORS; i++) {
		uint64_t r = GET(directors[i].rounds);

		if (r != seen[i]) {
			seen[i] = r;
			since[i] = now;
		} else if (now - since[i] > limit) {
			fprintf(stderr, "director %u (%s) is stuck in scene %s, round %llu, seed %llu\n", i,
				kind_names[directors[i].actor.kind], GET(directors[i].scene)->name,
				(unsigned long long)r, (unsigned long long)test_seed());
			kb_dump(STDERR_FILENO);
			abort();
		}
	}
}

static void *watchdog(void *arg)
{
	uint64_t seen[DIRECTORS] = { 0 }, since[DIRECTORS], limit = number("SOAK_STALL", 30) * 1000 * MS;

	(void)arg;
	for (unsigned i = 0; i < DIRECTORS; i++)
		since[i] = test_now_ns();
	for (;;) {
		usleep(500000);
		check_progress(seen, since, test_now_ns(), limit);
	}
	return NULL;
}

static void report(void)
{
	for (unsigned i = 0; i < SCENES; i++)
		printf("%s %llu%s", scenes[i].name, (unsigned long long)scenes[i].rounds, i + 1 < SCENES ? ", " : "\n");
	for (unsigned i = 0; i < KINDS; i++)
		printf("%s %llu%s", kind_names[i], (unsigned long long)cast_started[i], i + 1 < KINDS ? ", " : " threads\n");
}

int main(void)
{
	uint64_t end = test_now_ns() + number("SOAK_SECONDS", 600) * 1000 * MS, rand = test_seed();
	pthread_t dog;

	CHECK_EQ(kb_init(), 0);
	CHECK_EQ(kb_key_create(&cast_key, cast_key_gone), 0);
	for (unsigned i = 0; i < DIRECTORS; i++) {
		struct director *d = &directors[i];

		d->rand = test_rand(&rand) | 1;
		d->scene = &scenes[0];
		d->actor = (struct actor){ .act = direct, .scene = d, .number = i };
		cast_start(&d->actor, i < KINDS ? (enum kind)i : LIGHT, &rand);
	}
	CHECK_EQ(pthread_create(&dog, NULL, watchdog, NULL), 0);
	while (test_now_ns() < end)
		kb_sleep(100 * MS);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < DIRECTORS; i++)
		cast_join(&directors[i].actor);
	report();
	return 0;
}
