/* core/supervisor, core/respawn and all that they interrupt: a process that is a virtual processor is
 * killed in front of each store that an operation of the library makes, in turn, and its successor
 * perhaps a few stores later. A thread that waits for the operation gets its result, at most the
 * thread that ran is lost for each kill, and every object can be used.
 * POINTS=all: every point of every operation, and as many pairs (make soak-kill), as the options
 * say; else some of each with each scheduler. ACT=name: that operation.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/io.h>
#include <kochab/kochab.h>
#include <kochab/sync.h>
#include <stdlib.h>
#include <string.h>

#include "core/child.h"

#ifndef KB_TEST_POINTS

int main(void)
{
	SKIP("not built with points: they need gcc on x86-64, no sanitizer");
}

#else

#include <malloc.h>

#include "core/points.h"

enum {
	SOME = 3, /* points of an act, in a short run */
	MOST = 1500,
	CHILDREN = 6,
	YIELDS = 5
};
#define MS 1000000ull

static struct objects {
	kb_event_t event;
	kb_sem_t sem, done_all;
	kb_mutex_t mutex;
	kb_cond_t cond;
	kb_rwlock_t lock;
	kb_chan_t *chan;
	int pipe[2];
	/* protected by a lock */
	volatile unsigned long a, b;
	volatile int said;
} o;

/* This round's. */
static struct {
	const struct act *act;
	unsigned begun, done; /* threads of this round */
	unsigned ready;       /* the partner is about to wait */
} round_;

static volatile int stage; /* for a look at a hanging act */

#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ADD(x, n) __atomic_add_fetch(&(x), n, __ATOMIC_ACQ_REL)

static uint64_t in(uint64_t ns)
{
	return kb_now() + ns;
}

static void take(void)
{
	int e = kb_mutex_lock(&o.mutex);

	if (e == EOWNERDEAD) {
		o.b = o.a;
		e = kb_mutex_consistent(&o.mutex);
	}
	CHECK_EQ(e, 0);
	CHECK_EQ(o.a, o.b);
}

static void give(void)
{
	o.a++;
	o.b++;
	CHECK_EQ(kb_mutex_unlock(&o.mutex), 0);
}

/* ---- the victim's acts, their waiters, and help for the waiters if the victim was lost before  */

static void nothing(void) { }

static void v_notify(void) { kb_event_notify(&o.event, 1); }
static void w_event(void) { while (kb_event_timedwait(&o.event, NULL, in(20000 * MS))) CHECK(0); }
static void v_wait(void)
{
	kb_event_init(&o.event, NULL);
	kb_event_timedwait(&o.event, NULL, in(MS / 5));
}
static void v_post(void) { CHECK_EQ(kb_sem_post(&o.sem), 0); }
static void w_sem(void) { CHECK_EQ(kb_sem_timedwait(&o.sem, in(20000 * MS)), 0); }
static void v_sem(void) { kb_sem_timedwait(&o.sem, in(MS / 5)); }
static void v_mutex(void) { for (int i = 0; i < 3; i++) { take(); kb_yield(); give(); } }
static void v_signal(void) { take(); o.said = 1; kb_cond_broadcast(&o.cond); give(); }
static void w_cond(void)
{
	take();
	while (!o.said) {
		int e = kb_cond_timedwait(&o.cond, &o.mutex, in(20000 * MS));

		if (e == EOWNERDEAD) {
			o.b = o.a;
			e = kb_mutex_consistent(&o.mutex);
		}
		CHECK_EQ(e, 0);
	}
	give();
}
static void v_yield(void) { for (int i = 0; i < YIELDS; i++) kb_yield(); }
static void v_sleep(void) { kb_sleep(MS / 10); }
static void *child(void *arg) { kb_yield(); return arg; }
static void v_create(void)
{
	kb_thread_t t[CHILDREN];
	void *r;

	for (uintptr_t i = 0; i < CHILDREN; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, child, (void *)i), 0);
	for (uintptr_t i = 0; i < CHILDREN; i++) {
		int e = kb_thread_join(t[i], &r);

		CHECK(e == EOWNERDEAD || (e == 0 && r == (void *)i));
	}
}
static void v_create_own(void)
{
	kb_thread_t t;
	kb_attr_t a;
	int e;

	kb_attr_init(&a);
	kb_attr_settls(&a, KB_TLS_OWN);
	CHECK_EQ(kb_thread_create(&t, &a, child, NULL), 0);
	e = kb_thread_join(t, NULL);
	CHECK(e == 0 || e == EOWNERDEAD);
}
static void v_send(void)
{
	int x = 7;

	for (int i = 0; i < 3; i++)
		kb_chan_timedsend(o.chan, &x, in(MS));
}
static void w_recv(void)
{
	int x = 0;

	CHECK_EQ(kb_chan_timedrecv(o.chan, &x, in(20000 * MS)), 0);
	CHECK_EQ(x, 7);
}
static void h_send(void) { int x = 7; kb_chan_trysend(o.chan, &x); }
static void v_recv(void) { int x; kb_chan_timedrecv(o.chan, &x, in(MS / 5)); }
static void v_write(void) { kb_io_write(o.pipe[1], "x", 1, in(MS)); }
static void w_read(void)
{
	char c = 0;

	CHECK_EQ(kb_io_read(o.pipe[0], &c, 1, in(20000 * MS)), 1);
	CHECK_EQ(c, 'x');
}
static void v_read(void) { char c; kb_io_read(o.pipe[0], &c, 1, in(MS / 5)); }
/* Blocks of a few sizes, whose bins they fill and empty; each is the caller's alone. A lost thread
 * keeps its blocks. */
enum { TAKEN = 10 };
static void fill(void **block, unsigned char mark)
{
	static const unsigned short size[] = { 4000, 9000, 30000 };

	for (unsigned i = 0; i < TAKEN; i++) {
		size_t n = size[i % 3];

		block[i] = malloc(n);
		CHECK(block[i] != NULL);
		memset(block[i], mark, n);
	}
	for (unsigned i = 0; i < TAKEN; i++)
		for (unsigned j = 0; j < size[i % 3]; j += 500)
			CHECK_EQ(((unsigned char *)block[i])[j], mark);
}
static void v_heap(void)
{
	void *block[TAKEN];

	fill(block, 'v');
	for (unsigned i = 0; i < TAKEN; i++)
		free(block[i]);
}
static void w_heap(void)
{
	void *block[TAKEN];

	fill(block, 'w');
	kb_yield();
	for (unsigned i = 0; i < TAKEN; i++)
		free(block[i]);
}
/* Blocks of the thread before go home from here. */
static void v_pass(void)
{
	static void *blocks[TAKEN]; /* exchanged atomically */
	void *block[TAKEN];

	fill(block, 'p');
	for (unsigned i = 0; i < TAKEN; i++)
		free(__atomic_exchange_n(&blocks[i], block[i], __ATOMIC_ACQ_REL));
}
static void v_trim(void)
{
	char *p = malloc(300000), *q;

	CHECK(p != NULL);
	memset(p, 't', 300000);
	q = realloc(p, 900000);
	CHECK(q != NULL);
	CHECK_EQ(q[299999], 't');
	free(q);
	malloc_trim(0);
}
static void v_rw(void)
{
	CHECK_EQ(kb_rwlock_rdlock(&o.lock), 0);
	kb_rwlock_unlock(&o.lock);
}

static const struct act {
	const char *name;
	void (*victim)(void), (*partner)(void), (*help)(void);
} acts[] = {
	{ "notify", v_notify, w_event, v_notify },
	{ "wait", v_wait, NULL, nothing },
	{ "post", v_post, w_sem, v_post },
	{ "wait for none", v_sem, NULL, nothing },
	{ "lock", v_mutex, v_mutex, nothing },
	{ "broadcast", v_signal, w_cond, v_signal },
	{ "yield", v_yield, v_yield, nothing },
	{ "sleep", v_sleep, v_sleep, nothing },
	{ "create", v_create, v_yield, nothing },
	{ "create with TLS", v_create_own, v_yield, nothing },
	{ "send", v_send, w_recv, h_send },
	{ "recv", v_recv, NULL, nothing },
	{ "write", v_write, w_read, v_write },
	{ "read", v_read, NULL, nothing },
	{ "read lock", v_rw, v_rw, nothing },
	{ "allocate", v_heap, w_heap, nothing },
	{ "pass blocks", v_pass, v_pass, nothing },
	{ "trim", v_trim, w_heap, nothing },
};

/* ---- a round --------------------------------------------------------------------------------- */

static void *partner(void *unused)
{
	kb_event_init(&o.event, NULL);
	ADD(round_.ready, 1);
	round_.act->partner();
	ADD(round_.done, 1);
	return unused;
}

static void compute(void)
{
	volatile unsigned x = 0;

	for (unsigned i = 0; i < 20000; i++)
		x += i;
	(void)x;
}

static void *victim(void *unused)
{
	unsigned fired = points.fired;

	points_arm();
	round_.act->victim();
	points_disarm();
	/* a killed thread is told for some ms, and is lost where it is in code of its own: here */
	for (uint64_t end = test_now_ns() + 5 * MS; points.fired != fired && points.fired % 4 == 0 &&
	    test_now_ns() < end;)
		compute();
	ADD(round_.done, 1);
	return unused;
}

static void begin(void *(*fn)(void *), const char *name)
{
	kb_thread_t t;
	kb_attr_t a;

	kb_attr_init(&a);
	kb_attr_setname(&a, name);
	kb_attr_setdetached(&a, 1);
	CHECK_EQ(kb_thread_create(&t, &a, fn, NULL), 0);
}

/* Waits until threads of the round end, or are lost. */
static void finish(unsigned n)
{
	uint64_t since = test_now_ns(), next = 20 * MS;

	while (GET(round_.done) < n) {
		uint64_t now = test_now_ns() - since;

		if (now > 15000 * MS) {
			fprintf(stderr, "hangs: %s, point %u, again %u, fired %u, done %u of %u, stage %d\n",
				round_.act->name,
				points.at, points.again, points.fired, GET(round_.done), n, stage);
			kb_dump(2);
			_exit(3);
		}
		if (now > next) {
			points_disarm();
			round_.act->help();
			next *= 2;
		}
		kb_sleep(MS / 20);
	}
}

/* Checks that every object works, and is as it was at the beginning. */
static void settle(void)
{
	int x = 3;
	char c;

	while (kb_sem_trywait(&o.sem) == 0)
		;
	CHECK_EQ(kb_sem_post(&o.sem), 0);
	CHECK_EQ(kb_sem_timedwait(&o.sem, in(15000 * MS)), 0);
	take();
	o.said = 0;
	give();
	CHECK_EQ(kb_rwlock_timedwrlock(&o.lock, in(15000 * MS)), 0);
	CHECK_EQ(kb_rwlock_unlock(&o.lock), 0);
	while (kb_chan_tryrecv(o.chan, &x) == 0)
		;
	x = 3;
	CHECK_EQ(kb_chan_timedsend(o.chan, &x, in(15000 * MS)), 0);
	CHECK_EQ(kb_chan_timedrecv(o.chan, &x, in(15000 * MS)), 0);
	CHECK_EQ(x, 3);
	while (kb_io_read(o.pipe[0], &c, 1, 0) == 1)
		;
	CHECK_EQ(kb_io_write(o.pipe[1], "y", 1, in(15000 * MS)), 1);
	CHECK_EQ(kb_io_read(o.pipe[0], &c, 1, in(15000 * MS)), 1);
	CHECK_EQ(c, 'y');
}

/* Returns how often it was killed. *n: points that it came to. */
static unsigned die_at(const struct act *a, unsigned at, unsigned again, unsigned *n)
{
	unsigned fired = points.fired, threads = 1;
	struct kb_crash_counts c;

	memset(&round_, 0, sizeof round_);
	round_.act = a;
	points.at = at;
	points.again = again;
	stage = 1;
	if (a->partner) {
		begin(partner, "partner");
		threads++;
		while (!GET(round_.ready) && !GET(round_.done))
			kb_sleep(MS / 50);
	}
	stage = 2;
	begin(victim, "victim");
	finish(threads);
	points_disarm();
	stage = 3;
	*n = points.count;
	settle();
	stage = 4;
	/* the supervisor counts when the successor goes on already */
	for (uint64_t since = test_now_ns(); kb_crash_counts(&c), c.kills != points.fired;
	    kb_sleep(MS / 20))
		CHECK(test_now_ns() - since < 15000 * MS);
	CHECK(c.lost <= c.kills);
	return points.fired - fired;
}

/* ---- all rounds: by a thread that may itself be lost ---------------------------------------- */

static struct {
	unsigned act, k, total;
	int counted; /* total is known */
	uint64_t rand;
	int all;
	const char *only;
	unsigned kills, rounds;
} plan;

/* Returns the act's next point; 0: it has no more. */
static unsigned next_point(void)
{
	plan.k++;
	if (!plan.counted)
		return UINT32_MAX; /* none: to count them */
	if (plan.all)
		return plan.k <= plan.total && plan.k < MOST ? plan.k : 0;
	return plan.k <= SOME && plan.total ? 1 + (unsigned)(test_rand(&plan.rand) % plan.total) : 0;
}

static void *master(void *unused)
{
	while (plan.act < sizeof acts / sizeof *acts) {
		const struct act *a = &acts[plan.act];
		unsigned n, at = plan.only && strcmp(plan.only, a->name) ? 0 : next_point();

		if (!at) {
			if (plan.counted)
				printf("%s: %u points\n", a->name, plan.total);
			plan.act++;
			plan.k = 0;
			plan.counted = 0;
			continue;
		}
		plan.rounds++;
		plan.kills += die_at(a, at, 0, &n);
		if (!plan.counted) {
			plan.total = n < MOST ? n : MOST;
			plan.k = 0;
			plan.counted = 1;
			continue;
		}
		die_at(a, at, 1 + (unsigned)(test_rand(&plan.rand) % 60), &n);
	}
	kb_sem_post(&o.done_all);
	return unused;
}

static void lost(kb_thread_t t, const struct kb_crash_info *info)
{
	(void)t;
	if (strcmp(info->name, "master") == 0)
		begin(master, "master");
	else
		ADD(round_.done, info->name[0] != 0);
}

static void program(void *arg)
{
	struct kb_crash_counts c;

	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_CONTAIN", "yes", 1);
	if (arg) {
		setenv("KOCHAB_SCHED", ((const char *const *)arg)[0], 1);
		setenv("KOCHAB_VPS", ((const char *const *)arg)[1], 1);
	}
	plan.rand = test_seed();
	plan.only = getenv("ACT");
	plan.all = getenv("POINTS") && strcmp(getenv("POINTS"), "all") == 0;
	if (kb_init() != 0)
		_exit(77);
	kb_on_crash(lost);
	kb_sem_init(&o.sem, 0);
	kb_sem_init(&o.done_all, 0);
	kb_mutex_init(&o.mutex, KB_MUTEX_ROBUST);
	kb_cond_init(&o.cond);
	kb_rwlock_init(&o.lock, 0);
	CHECK_EQ(kb_chan_create(&o.chan, sizeof(int), 2), 0);
	CHECK_EQ(pipe(o.pipe), 0);
	begin(master, "master");
	kb_sem_wait(&o.done_all);
	kb_crash_counts(&c);
	printf("rounds %u kills %u lost %u longest %llu us\n", plan.rounds, c.kills, c.lost,
	       (unsigned long long)c.longest_ns / 1000);
	CHECK(c.kills > 0);
	fflush(stdout);
}

static void one(const char *const *how, int ms)
{
	static struct child c;

	child_start(&c, program, (void *)(uintptr_t)how);
	child_end(&c, ms);
	if (!c.late && WIFEXITED(c.status) && WEXITSTATUS(c.status) == 77)
		SKIP("no process bodies here");
	child_exited(&c, 0);
	fputs(c.text, stdout);
}

int main(void)
{
	static const char *const some[][2] = { { "rotator", "2" }, { "rotator-paper", "2" },
		{ "lb2", "1" }, { "steal", "4" } };

	if (getenv("POINTS"))
		one(NULL, 600000);
	else
		for (unsigned i = 0; i < sizeof some / sizeof *some; i++)
			one(some[i], 60000);
	return 0;
}

#endif
