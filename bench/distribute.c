/* bench/distribute.c - how long from one VP holding all threads to every VP holding its share? (table 2
 * of "A scheduling mechanism for a lightweight process library": the time spent changing from serial to
 * parallel: a large number of threads is created at a time, they are distributed to every VP.)
 *
 * Main, on one VP, creates N threads that all stay ready: they count themselves on the VP they find
 * themselves on and yield. The clock starts before the first create. "create": all are created; "first":
 * every VP has run one; "share": every VP holds at least 9/10 of N / VPs at the same moment. A run that
 * does not get there within 2 s is counted as 2 s, and the note says so.
 *
 * The paper's machine had a processor for each VP. Where there are fewer, the kernel would let each VP run for one or
 * more whole time slices (10 ms and more) before another one got its first turn, and nothing else would be seen.
 * So after every TURNS turns a VP offers its processor to the other kernel threads: all go on together, more slowly.
 * As in the paper's fork-join program this happens again and again: the first of ROUNDS is not counted (stacks are
 * touched for the first time), the median of the others is reported. */
#include <sched.h>
#include <stdlib.h>

#include "crew.h"

enum { VPS_MOST = 1024, ROUNDS = 16, TURNS = 32 };

static struct {
	unsigned vps, share;
	double start, first, shared;
	unsigned stop;
	_Alignas(64) struct {
		_Alignas(64) unsigned held, turns;
	} vp[VPS_MOST];
} d;

static int every(unsigned least)
{
	for (unsigned i = 0; i < d.vps; i++)
		if (__atomic_load_n(&d.vp[i].held, __ATOMIC_RELAXED) < least)
			return 0;
	return 1;
}

static void set_once(double *when)
{
	double zero = 0, now = bench_now();

	__atomic_compare_exchange(when, &zero, &now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void arrive(int vp)
{
	unsigned held = __atomic_add_fetch(&d.vp[vp].held, 1, __ATOMIC_RELAXED);

	if (held == 1 && every(1))
		set_once(&d.first);
	if (held >= d.share && every(d.share)) {
		set_once(&d.shared);
		__atomic_store_n(&d.stop, 1, __ATOMIC_RELAXED);
	}
}

static void *ready(void *arg)
{
	int at = -1;

	while (!__atomic_load_n(&d.stop, __ATOMIC_RELAXED)) {
		int vp = kb_vp_self();
		if (vp != at) {
			if (at >= 0)
				__atomic_sub_fetch(&d.vp[at].held, 1, __ATOMIC_RELAXED);
			arrive(at = vp);
		}
		if (++d.vp[vp].turns % TURNS == 0) /* only threads of this VP, one after the other */
			sched_yield();
		kb_yield();
	}
	return arg;
}

struct times {
	double create, first, share; /* us; 0: not reached */
};

static struct times once(const struct crew_attr *attr, const struct bench_case *c, uintptr_t *threads)
{
	struct times t;

	for (unsigned i = 0; i < c->vps; i++)
		d.vp[i].held = 0;
	d.first = d.shared = 0;
	d.stop = 0;
	kb_sleep(20000000); /* the other VPs sleep */
	d.start = bench_now();
	for (unsigned i = 0; i < c->threads; i++)
		crew_create(attr, CREW_LIGHT, &threads[i], ready, NULL);
	t.create = bench_now() - d.start;
	while (!__atomic_load_n(&d.stop, __ATOMIC_RELAXED) && bench_now() < d.start + 2)
		kb_sleep(1000000);
	__atomic_store_n(&d.stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < c->threads; i++)
		crew_join(CREW_LIGHT, threads[i], NULL);
	t.first = d.first > 0 ? d.first - d.start : 2;
	t.share = d.shared > 0 ? d.shared - d.start : 2;
	return t;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *metric, double *seconds)
{
	qsort(seconds, ROUNDS - 1, sizeof *seconds, compare);
	bench_report(metric, "us", seconds[(ROUNDS - 1) / 2] * 1e6);
}

static void run(const struct bench_case *c)
{
	struct crew_attr attr;
	uintptr_t *threads = bench_alloc(c->threads, sizeof *threads);
	double create[ROUNDS], first[ROUNDS], share[ROUNDS];

	if (c->vps > VPS_MOST)
		bench_skip("at most %d VPs", VPS_MOST);
	d.vps = c->vps;
	d.share = c->threads / c->vps * 9 / 10;
	crew_start(&attr, CREW_LIGHT, c);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct times t = once(&attr, c, threads);

		create[i] = t.create;
		first[i] = t.first;
		share[i] = t.share;
	}
	report("create", create + 1);
	report("first", first + 1);
	report("share", share + 1);
	if (share[ROUNDS - 1] >= 2)
		printf("{\"note\": \"no share within 2 s in some rounds\"}\n");
	free(threads);
}

static const struct bench_method methods[] = {
	{ "rotator", run, 0, "KOCHAB_SCHED=rotator", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ "rotator-paper", run, 0, "KOCHAB_SCHED=rotator-paper", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ "lb2-semop", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=semop", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ "lb2-futex", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=futex", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ "lb2-spin", run, 0, "KOCHAB_SCHED=lb2 KOCHAB_LB2_LOCK=spin", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ "steal", run, 0, "KOCHAB_SCHED=steal", BENCH_FREE_ONLY, 0, 0, 2, 0 },
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
