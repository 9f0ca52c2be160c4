/* space/event: messages there and back between two programs, between lightweight and between kernel
 * threads, while both poll and while the receiver sleeps; none is lost.
 * matrix: sched=rotator vps=1,2 */
#include "space_test.h"

enum { PAIRS = 40, ROUNDS = 500, SLEEPY = 20 };

struct seat {
	kb_space_event_t *in, *out;
	unsigned number;
	uint64_t seed;
	bool first;
};

static void *sit(void *arg)
{
	struct seat *s = arg;
	uint64_t got, seed = s->seed;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		if (s->first) {
			CHECK_EQ(kb_space_event_notify(s->out, i), 0);
			if (i % SLEEPY == s->number % SLEEPY)
				kb_sleep(test_rand(&seed) % 300000);
		}
		CHECK_EQ(kb_space_event_wait(s->in, &got, in_ms(20000)), 0);
		CHECK_EQ(got, i);
		if (!s->first)
			CHECK_EQ(kb_space_event_notify(s->out, i), 0);
	}
	return NULL;
}

static void all(kb_space_t *space, bool first)
{
	static struct seat seat[PAIRS];
	struct runner r[PAIRS];
	char name[32];

	for (unsigned i = 0; i < PAIRS; i++) {
		seat[i] = (struct seat){ .number = i, .first = first, .seed = test_seed() + i };
		snprintf(name, sizeof name, "to%u", i);
		CHECK_EQ(kb_space_event_open(space, name, first ? 2 : 1,
			first ? &seat[i].out : &seat[i].in), 0);
		snprintf(name, sizeof name, "back%u", i);
		CHECK_EQ(kb_space_event_open(space, name, first ? 1 : 2,
			first ? &seat[i].in : &seat[i].out), 0);
	}
	for (unsigned i = 0; i < PAIRS; i++)
		run(&r[i], i % 8 == (first ? 1 : 2), sit, &seat[i]);
	for (unsigned i = 0; i < PAIRS; i++)
		run_join(&r[i]);
}

int main(int argc, char **argv)
{
	struct pair p = pair_begin(argc, argv);

	all(p.s, p.other);
	pair_end(&p);
	return 0;
}
