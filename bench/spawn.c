/* bench/spawn.c - what does a short-lived thread cost? Creates N threads that return at once, then
 * joins all; time / N. The creator is a thread of this kind, too. Rounds are run before the
 * measurement until they get no faster: stacks and control blocks are made when their number is
 * first in use at once, which on several processors is not in the first round. */
#include <stdlib.h>

#include "crew.h"

struct run {
	struct crew_attr attr;
	unsigned count;
	uintptr_t *threads;
};

static void *returns(void *arg)
{
	return arg;
}

CREW_INLINE double rounds(struct run *r, enum crew kind, uint64_t n)
{
	double start = bench_now();

	for (; n; n--) {
		for (unsigned i = 0; i < r->count; i++)
			crew_create(&r->attr, kind, &r->threads[i], returns, &r->threads[i]);
		for (unsigned i = 0; i < r->count; i++) {
			void *result;
			crew_join(kind, r->threads[i], &result);
			if (result != &r->threads[i])
				bench_fail("thread %u returned something else", i);
		}
	}
	return bench_now() - start;
}

enum { CALM = 3 }; /* rounds without gain, before it is measured */
#define WARM 1.0   /* s at most */

CREW_INLINE void warm(struct run *r, enum crew kind)
{
	double best = rounds(r, kind, 1), all = best;

	for (unsigned calm = 0; calm < CALM && all < WARM; calm++) {
		double took = rounds(r, kind, 1);

		all += took;
		if (took < 0.9 * best) {
			best = took;
			calm = 0;
		}
	}
}

static double once_kb(void *arg, uint64_t n)
{
	return rounds(arg, CREW_LIGHT, n);
}

static double once_posix(void *arg, uint64_t n)
{
	return rounds(arg, CREW_PTHREAD, n);
}

struct job {
	const struct bench_case *c;
	struct run *run;
	double seconds;
};

static void *measure_kb(void *arg)
{
	struct job *j = arg;

	warm(j->run, CREW_LIGHT);
	j->seconds = bench_scale(j->c, once_kb, j->run);
	return NULL;
}

static void *measure_posix(void *arg)
{
	struct job *j = arg;

	warm(j->run, CREW_PTHREAD);
	j->seconds = bench_scale(j->c, once_posix, j->run);
	return NULL;
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { .count = c->threads, .threads = bench_alloc(c->threads, sizeof(uintptr_t)) };
	struct job j = { .c = c, .run = &r };
	uintptr_t creator;
	void *none;

	crew_start(&r.attr, kind, c);
	crew_create(&r.attr, kind, &creator, kind == CREW_PTHREAD ? measure_posix : measure_kb, &j);
	crew_join(kind, creator, &none);
	bench_report("create+join", "ns", j.seconds / r.count * 1e9);
	free(r.threads);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY | BENCH_CLAMP, 20000, 0, 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_spawn = {
	.name = "spawn",
	.question = "create N threads that return, join all: time per thread",
	.methods = methods,
	.threads = "10000",
	.vps = "1,cores",
	.reference = "nptl",
	.peers = 1,
};
