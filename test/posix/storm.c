/* posix/storm.c - threads are created, cancelled (deferred and asynchronous), signalled, joined,
 * detached and exit at random, with clean-up handlers, thread-specific data, timed waits and
 * alternate stacks. In the end every handler pushed was popped, every value destroyed, every token
 * returned, every signal that must arrive has arrived; and no kernel thread, descriptor, mapping or
 * memory is left over. A watchdog takes a round that does not end for a hang. `make soak` runs it
 * for long.
 * soak: yes
 * SOAK_SECONDS (2), SOAK_STALL (30: seconds without progress), KB_TEST_SEED. */
#include "cancel_late.h"
#include "storm.h"

#include <dirent.h>
#include <sys/mman.h>

/* ---- an actor's life ------------------------------------------------------------------------- */
static void value_gone(void *value)
{
	struct actor *a = value;
	stack_t none = { .ss_flags = SS_DISABLE };
	sigset_t all;

	CHECK(a == me);
	/* the next actor may have the alternate stack while this thread still ends */
	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	CHECK_EQ(sigaltstack(&none, NULL) ? errno : 0, 0);
	me = NULL;
	ADD(values_gone, 1);
	if (a->detached)
		CHECK_EQ(sem_post(&a->play->gone), 0);
}

static void alternate(struct actor *a)
{
	stack_t s = { .ss_sp = a->alt, .ss_size = ALT_STACK };

	if (below(&a->rand, 3))
		return;
	CHECK_EQ(sigaltstack(&s, NULL) ? errno : 0, 0);
	CHECK_EQ(pthread_setspecific(second, a), 0);
}

static void *life(void *arg)
{
	struct actor *a = arg;
	unsigned turns;

	mask_of_actor();
	me = a;
	CHECK_EQ(pthread_setspecific(key, a), 0);
	ADD(values_set, 1);
	alternate(a);
	ADD(pushed, 1);
	pthread_cleanup_push(popped_one, a);
	turns = 1 + below(&a->rand, 30);
	while (turns-- > 0 && !GET(a->play->stop)) {
		deeds[below(&a->rand, DEEDS)](a);
		if (a->detached && below(&a->rand, 30) == 0)
			CHECK_EQ(pthread_cancel(pthread_self()), 0);
		CHECK(me == a && pthread_getspecific(key) == a);
	}
	pthread_cleanup_pop(1);
	return a;
}

/* ---- directors ------------------------------------------------------------------------------- */
static void start(struct actor *a, struct play *p, uint64_t *rand)
{
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN); /* aarch64: 128 KiB */
	pthread_attr_t attr;

	memset(a, 0, offsetof(struct actor, alt));
	a->play = p;
	a->rand = test_rand(rand) | 1;
	a->detached = below(rand, 5) == 0;
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, (least < 65536 ? 65536 : least) << below(rand, 3)), 0);
	if (a->detached)
		CHECK_EQ(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	CHECK_EQ(pthread_create(&a->thread, &attr, life, a), 0);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);
	ADD(started, 1);
}

static void exact(int e)
{
	CHECK(e == 0 || errno == EAGAIN);
	if (e == 0)
		ADD(exact_sent, 1);
}

static void interfere(struct actor *a, uint64_t *rand)
{
	union sigval v = { .sival_int = 1 };
	int e;

	switch (below(rand, 10)) {
	case 0:
	case 1:
		a->cancelled = true;
		ADD(cancels, 1);
		CHECK_EQ(cancel_late(a->thread), 0);
		break;
	case 2:
		CHECK_EQ(found_late(pthread_kill(a->thread, SIGUSR1)), 0);
		break;
	case 3:
		e = pthread_sigqueue(a->thread, SIGRTMIN, v);
		CHECK(e == 0 || e == EAGAIN || e == ESRCH || e == EINVAL); /* it may have ended */
		break;
	case 4:
		CHECK_EQ(kill(getpid(), SIGUSR2), 0);
		break;
	case 5:
		exact(sigqueue(getpid(), SIGRTMIN + 2, v));
		break;
	case 6:
		usleep(below(rand, 200));
		break;
	case 7:
		sched_yield();
		break;
	default:
		break;
	}
}

static void join(struct actor *a, uint64_t *rand)
{
	void *result = NULL;
	int e = EBUSY;

	while (e == EBUSY || e == ETIMEDOUT) {
		struct timespec t = in_us(CLOCK_REALTIME, below(rand, 500));
		unsigned how = below(rand, 4);

		e = how == 0   ? pthread_tryjoin_np(a->thread, &result)
			: how == 1 ? pthread_timedjoin_np(a->thread, &result, &t)
				   : pthread_join(a->thread, &result);
		if (e == EBUSY)
			sched_yield();
	}
	CHECK_EQ(e, 0);
	CHECK(result == a || (result == PTHREAD_CANCELED && a->cancelled));
	ADD(ended_cancelled, result == PTHREAD_CANCELED);
}

static void end_of(struct play *p, unsigned n, uint64_t *rand)
{
	int value;
	char c;

	CHECK_EQ(pthread_mutex_lock(&p->mutex), 0);
	PUT(p->stop, true);
	CHECK_EQ(pthread_cond_broadcast(&p->cond), 0);
	CHECK_EQ(pthread_mutex_unlock(&p->mutex), 0);
	for (unsigned i = 0; i < n; i++) {
		if (!p->actor[i].detached)
			join(&p->actor[i], rand);
		else
			while (sem_wait(&p->gone))
				CHECK_EQ(errno, EINTR);
	}
	CHECK_EQ(sem_getvalue(&p->tokens, &value), 0);
	CHECK_EQ(value, TOKENS);
	CHECK_EQ(p->inside, 0);
	CHECK_EQ(p->readers + p->writers, 0);
	for (struct pollfd f = { .fd = p->pipe[0], .events = POLLIN }; poll(&f, 1, 0) > 0;)
		CHECK_EQ(read(p->pipe[0], &c, 1), 1);
}

static void round_of(struct play *p, uint64_t *rand)
{
	unsigned n = 1 + below(rand, MAX_ACTORS);

	PUT(p->stop, false);
	for (unsigned i = 0; i < n; i++)
		start(&p->actor[i], p, rand);
	for (unsigned i = below(rand, 100); i > 0; i--) {
		struct actor *a = &p->actor[below(rand, n)];

		if (!a->detached)
			interfere(a, rand);
	}
	end_of(p, n, rand);
	ADD(p->rounds, 1);
}

static void make(struct play *p)
{
	pthread_mutexattr_t robust;

	CHECK_EQ(pthread_mutexattr_init(&robust), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_EQ(pthread_mutex_init(&p->robust, &robust), 0);
	CHECK_EQ(pthread_mutex_init(&p->mutex, NULL), 0);
	CHECK_EQ(pthread_cond_init(&p->cond, NULL), 0);
	CHECK_EQ(pthread_rwlock_init(&p->lock, NULL), 0);
	CHECK_EQ(sem_init(&p->tokens, 0, TOKENS), 0);
	CHECK_EQ(sem_init(&p->gone, 0, 0), 0);
	CHECK_EQ(pipe(p->pipe), 0);
}

static void *direct(void *arg)
{
	struct play *p = arg;
	uint64_t rand = test_seed() + (uint64_t)(p - plays) * 7919;

	while (!GET(curtain))
		round_of(p, &rand);
	return p;
}

/* ---- leftovers ------------------------------------------------------------------------------ */
struct left { long threads, descriptors, mappings, kib; };

static long entries(const char *dir)
{
	DIR *d = opendir(dir);
	long n = -2;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct left look(void)
{
	struct left l = { test_kernel_threads(), entries("/proc/self/fd"), 0, 0 };
	FILE *f = fopen("/proc/self/maps", "r");
	long pages = 0, resident = 0;

	for (int c; f && (c = getc(f)) != EOF;)
		l.mappings += c == '\n';
	fclose(f);
	f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%ld %ld", &pages, &resident) == 2);
	fclose(f);
	l.kib = resident * (sysconf(_SC_PAGESIZE) / 1024);
	return l;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *v = getenv(name);

	return v ? strtoull(v, NULL, 10) : otherwise;
}

/* Before Linux 6.13 a guard page is a mapping of its own, and so is each stack that is kept: at
 * most 256 of each of the three sizes, by each virtual processor and by threads that are on none
 * (mem/stack.h). */
static long kept_mappings(void)
{
	enum { GUARD_INSTALL = 102, KEPT = 256, SIZES = 3 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool costs = madvise(at, page, GUARD_INSTALL) != 0;

	munmap(at, page);
	return costs ? 2 * KEPT * SIZES * ((long)number("KOCHAB_VPS", 0) + 1) : 0;
}

/* The longer it has run the more must have been used again. Each arena, kept stack and helper
 * thread has its bound. */
static void nothing_left(struct left early, struct left late, uint64_t rounds)
{
	enum { LONG = 20000 };

	printf("threads %ld then %ld, descriptors %ld then %ld, mappings %ld then %ld, KiB %ld then %ld\n",
		early.threads, late.threads, early.descriptors, late.descriptors, early.mappings, late.mappings,
		early.kib, late.kib);
	CHECK(late.threads < early.threads + 40);
	CHECK(late.descriptors <= early.descriptors + 4);
	CHECK(late.mappings < early.mappings + 400 + kept_mappings());
	CHECK(rounds < 1000 || late.kib < early.kib + 32 * 1024);
	/* by then all stacks of the run are mapped; only the deepest page that each stack was used to
	 * still grows */
	CHECK(rounds < LONG || (late.mappings < early.mappings + 40 + kept_mappings() && late.kib < early.kib + 16 * 1024));
}

static void all_accounted(void)
{
	uint64_t end = test_now_ns() + 10000000000u;

	while (GET(exact_seen) != GET(exact_sent) && test_now_ns() < end)
		usleep(1000);
	CHECK_EQ(exact_seen, exact_sent);
	CHECK_EQ(pushed, popped);
	CHECK_EQ(values_set, values_gone);
}

/* Main is the watchdog; it sleeps in the kernel where it would be a thread too many for the virtual
 * processors. */
static struct left watch(uint64_t end)
{
	uint64_t seen[DIRECTORS] = { 0 }, since[DIRECTORS], limit = number("SOAK_STALL", 30) * 1000000000u;
	uint64_t began = test_now_ns(), quarter = began + (end - began) / 4, now;
	struct left early = { 0 };

	for (unsigned i = 0; i < DIRECTORS; i++)
		since[i] = began;
	while ((now = test_now_ns()) < end) {
		usleep(20000);
		if (now > quarter && early.threads == 0)
			early = look();
		for (unsigned i = 0; i < DIRECTORS; i++) {
			if (seen[i] != GET(plays[i].rounds)) {
				seen[i] = GET(plays[i].rounds);
				since[i] = now;
			} else if (now - since[i] > limit) {
				fprintf(stderr, "director %u is stuck in round %llu\n", i, (unsigned long long)seen[i]);
				kill(getpid(), SIGQUIT);
				sleep(1);
				abort();
			}
		}
	}
	/* a machine that is so busy has not let us look earlier */
	return early.threads ? early : look();
}

int main(void)
{
	uint64_t end = test_now_ns() + number("SOAK_SECONDS", 2) * 1000000000u, rounds = 0;
	pthread_t director[DIRECTORS];
	struct left early;

	test_seed();
	CHECK_EQ(pthread_key_create(&second, NULL), 0);
	CHECK_EQ(pthread_key_create(&key, value_gone), 0);
	CHECK_EQ(sem_init(&bell, 0, 0), 0);
	handlers();
	for (unsigned i = 0; i < DIRECTORS; i++) {
		make(&plays[i]);
		CHECK_EQ(pthread_create(&director[i], NULL, direct, &plays[i]), 0);
	}
	early = watch(end);
	PUT(curtain, true);
	for (unsigned i = 0; i < DIRECTORS; i++) {
		CHECK_EQ(pthread_join(director[i], NULL), 0);
		rounds += plays[i].rounds;
	}
	all_accounted();
	printf("%llu rounds, %llu threads, %llu cancels, %llu of them ended so, %llu by pthread_exit; "
		"%llu signals, %llu exact\n",
		(unsigned long long)rounds, (unsigned long long)started, (unsigned long long)cancels,
		(unsigned long long)ended_cancelled, (unsigned long long)ended_exit, (unsigned long long)handled,
		(unsigned long long)exact_seen);
	nothing_left(early, look(), rounds);
	return 0;
}
