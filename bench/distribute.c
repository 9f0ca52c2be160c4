/* bench/distribute.c - how long does it take from one VP holding all threads to every VP holding
 * its share? (Table 2 of "A scheduling mechanism for a lightweight process library": the time of
 * the change from serial to parallel: many threads are created at a time and distributed to every
 * VP.)
 *
 * The threads are created on VP 0 and stay ready: each looks at the state and yields. For every
 * scheduler:
 *
 * "share". Beginning: VP 0 holds all threads, and none has run. Each further VP has one bound
 * thread, which waits in the kernel, so that no VP is idle during the creation and none is given
 * threads (checked: else the run fails). The clock starts, then all bound threads are let go at one
 * time; their VPs have nothing left. End: every VP holds at least 9/10 of N / VPs. A VP holds its
 * share if a thread that runs there finds this many ready threads there (kb_vp_ready: in the VP's
 * queues, or given to the VP so that only this VP takes them), itself included. The VP is then
 * awake and has looked, no different VP will run its threads, and it need not have run them yet.
 * "first", "ran". The beginning of "share". End: each VP has run one thread; on each VP 9/10 of its
 * share of the threads have run last, at one moment.
 * "create", "create+first", "create+ran". Beginning: no thread has been created, and VPs 1 and up
 * sleep. End: the last create; the ends of "first" and "ran".
 *
 * A run that does not reach its end within 2 s is counted as 2 s, and the note says so.
 *
 * The paper's machine had a processor for each VP. With fewer processors, the kernel would let each
 * VP run for one or more whole time slices (10 ms and more) before the next VP got its first turn,
 * and the bench would measure only that. So after every TURNS turns a VP offers its processor to
 * the remaining kernel threads: all go on together, more slowly. As in the paper's fork-join
 * program the measurement is repeated: the first of ROUNDS rounds is not counted (stacks are
 * touched for the first time), the median of the remaining rounds is reported. */
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crew.h"

enum { VPS_MOST = 1024, ROUNDS = 16, TURNS = 32 };

static struct {
	const struct bench_case *c;
	struct crew_attr attr;
	uintptr_t *threads;
	unsigned vps, share;
	double start, shared, first, ran;
	unsigned stop;
	unsigned having;              /* VPs that hold their share */
	unsigned held_up, over;       /* VPs whose thread waits in the kernel; no more of that */
	_Alignas(64) struct {
		_Alignas(64) unsigned at; /* threads that have run here last */
		unsigned turns, has;  /* has its share */
		uint32_t go;          /* the word on which its bound thread waits in the kernel */
		kb_sem_t call;
	} vp[VPS_MOST];
} d;

static void set_once(double *when)
{
	double zero = 0, now = bench_now();

	__atomic_compare_exchange(when, &zero, &now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* ---- the threads ---- */

static int ran_on_each(unsigned least)
{
	for (unsigned i = 0; i < d.vps; i++)
		if (__atomic_load_n(&d.vp[i].at, __ATOMIC_RELAXED) < least)
			return 0;
	return 1;
}

static void arrive(int vp)
{
	unsigned at = __atomic_add_fetch(&d.vp[vp].at, 1, __ATOMIC_RELAXED);

	if (at == 1 && ran_on_each(1))
		set_once(&d.first);
	if (at >= d.share && ran_on_each(d.share))
		set_once(&d.ran);
}

/* Called by the threads of this VP in turn; counts the VPs that hold their share. */
static void look(int vp)
{
	unsigned n = 0, has;

	kb_vp_ready((unsigned)vp, &n);
	has = n + 1 >= d.share;
	if (has == d.vp[vp].has)
		return;
	d.vp[vp].has = has;
	if (__atomic_add_fetch(&d.having, has ? 1 : -1u, __ATOMIC_RELAXED) == d.vps)
		set_once(&d.shared);
}

/* Each does a little at its end: threads that only end are not worth their move, which the runtime
 * would find out and reckon with in the next round. */
static void work(void)
{
	double until = bench_now() + 2e-6;

	while (bench_now() < until)
		;
}

static void *ready(void *arg)
{
	int at = -1;

	while (!__atomic_load_n(&d.stop, __ATOMIC_RELAXED)) {
		int vp = kb_vp_self();

		look(vp);
		if (vp != at) {
			if (at >= 0)
				__atomic_sub_fetch(&d.vp[at].at, 1, __ATOMIC_RELAXED);
			arrive(at = vp);
		}
		if (++d.vp[vp].turns % TURNS == 0)
			sched_yield();
		kb_yield();
	}
	work();
	return arg;
}

/* ---- bound threads, which keep VPs 1 and up from taking threads ---- */

/* Lets go the bound threads of two VPs; each lets go two more, and so on. Otherwise VP 0 would be
 * busy waking kernel threads. */
static void let_go(unsigned vp)
{
	for (unsigned i = 2 * vp + 1; i <= 2 * vp + 2 && i < d.vps; i++) {
		__atomic_store_n(&d.vp[i].go, 1, __ATOMIC_RELAXED);
		syscall(SYS_futex, &d.vp[i].go, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

static void *holder(void *arg)
{
	unsigned vp = (unsigned)(uintptr_t)arg;

	for (;;) {
		kb_sem_wait(&d.vp[vp].call);
		if (d.over)
			return NULL;
		__atomic_store_n(&d.vp[vp].go, 0, __ATOMIC_RELAXED);
		__atomic_add_fetch(&d.held_up, 1, __ATOMIC_RELEASE); /* with hold_up's load */
		while (!__atomic_load_n(&d.vp[vp].go, __ATOMIC_RELAXED))
			syscall(SYS_futex, &d.vp[vp].go, FUTEX_WAIT, 0, NULL, NULL, 0);
		let_go(vp);
	}
}

static void start_bound(uintptr_t *t, unsigned vp, void *(*fn)(void *))
{
	struct crew_attr bound = d.attr;

	kb_attr_setvp(&bound.kb, (int)vp);
	crew_create(&bound, CREW_LIGHT, t, fn, (void *)(uintptr_t)vp);
}

static void call_all(void)
{
	for (unsigned i = 1; i < d.vps; i++)
		kb_sem_post(&d.vp[i].call);
}

static void hold_up(void)
{
	d.held_up = 0;
	call_all();
	while (__atomic_load_n(&d.held_up, __ATOMIC_ACQUIRE) < d.vps - 1) /* with holder's add */
		kb_sleep(100000);
	kb_sleep(5000000); /* and they are in the kernel */
}

/* ---- a round: on VP 0 ---- */

static void must_hold_all(void)
{
	for (unsigned i = 1; i < d.vps; i++) {
		unsigned n = 0;

		kb_vp_ready(i, &n);
		if (n)
			bench_fail("VP %u has %u threads before the beginning", i, n);
	}
}

static void create_all(void)
{
	for (unsigned i = 0; i < d.c->threads; i++)
		crew_create(&d.attr, CREW_LIGHT, &d.threads[i], ready, NULL);
}

static void begin(void)
{
	for (unsigned i = 0; i < d.vps; i++)
		d.vp[i].at = d.vp[i].has = 0;
	d.having = d.stop = 0;
	d.shared = d.first = d.ran = 0;
}

static int has_happened(double *when)
{
	double then;

	__atomic_load(when, &then, __ATOMIC_RELAXED);
	return then > 0;
}

static void end(void)
{
	while (!(has_happened(&d.ran) && has_happened(&d.shared)) && bench_now() < d.start + 2)
		kb_sleep(1000000);
	__atomic_store_n(&d.stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < d.c->threads; i++)
		crew_join(CREW_LIGHT, d.threads[i], NULL);
}

static double since_start(double when)
{
	return when > 0 ? when - d.start : 2;
}

struct times {
	double create[ROUNDS], first[2][ROUNDS], ran[2][ROUNDS], share[ROUNDS]; /* s; [1]: creation included */
};

static void from_nothing(struct times *t, unsigned round)
{
	begin();
	kb_sleep(20000000); /* the other VPs sleep */
	d.start = bench_now();
	create_all();
	t->create[round] = bench_now() - d.start;
	end();
	t->first[1][round] = since_start(d.first);
	t->ran[1][round] = since_start(d.ran);
}

static void from_one(struct times *t, unsigned round)
{
	begin();
	hold_up();
	create_all();
	must_hold_all();
	d.start = bench_now();
	let_go(0);
	end();
	t->share[round] = since_start(d.shared);
	t->first[0][round] = since_start(d.first);
	t->ran[0][round] = since_start(d.ran);
}

/* ---- the figures ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* True: some round had no end. */
static int report(const char *metric, double *seconds)
{
	qsort(seconds + 1, ROUNDS - 1, sizeof *seconds, compare);
	bench_report(metric, "us", seconds[ROUNDS / 2] * 1e6);
	return seconds[ROUNDS - 1] >= 2;
}

static void *deal(void *arg)
{
	static struct times t;
	int late;

	for (unsigned i = 0; i < ROUNDS; i++)
		from_nothing(&t, i);
	for (unsigned i = 0; i < ROUNDS; i++)
		from_one(&t, i);
	late = report("share", t.share);
	late |= report("first", t.first[0]) | report("ran", t.ran[0]);
	report("create", t.create);
	late |= report("create+first", t.first[1]) | report("create+ran", t.ran[1]);
	if (late)
		printf("{\"note\": \"no share within 2 s in some rounds\"}\n");
	return arg;
}

static void run(const struct bench_case *c)
{
	uintptr_t holders[VPS_MOST], dealer;

	if (c->vps > VPS_MOST)
		bench_skip("at most %d VPs", VPS_MOST);
	d.c = c;
	d.vps = c->vps;
	d.share = c->threads / c->vps * 9 / 10;
	d.threads = bench_alloc(c->threads, sizeof *d.threads);
	crew_start(&d.attr, CREW_LIGHT, c);
	for (unsigned i = 1; i < c->vps; i++) {
		kb_sem_init(&d.vp[i].call, 0);
		start_bound(&holders[i], i, holder);
	}
	start_bound(&dealer, 0, deal);
	crew_join(CREW_LIGHT, dealer, NULL);
	d.over = 1;
	call_all();
	for (unsigned i = 1; i < c->vps; i++)
		crew_join(CREW_LIGHT, holders[i], NULL);
	free(d.threads);
}

static const struct bench_method methods[] = {
	{ "rotator", run, 0, "KOCHAB_SCHED=rotator", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ "rotator-paper", run, 0, "KOCHAB_SCHED=rotator-paper", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ "lb2-semop", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=semop", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ "lb2-futex", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=futex", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ "lb2-spin", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=spin", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ "steal", run, 0, "KOCHAB_SCHED=steal", BENCH_FREE_ONLY, 0, 0, 1, 0 },
	{ 0 },
};

const struct bench bench_distribute = {
	.name = "distribute",
	.question = "from one VP with all threads to every VP with its share",
	.methods = methods,
	.threads = "10000",
	.vps = "8",
	.reference = "lb2-semop",
	.both_bodies = 1,
};
