/* bench/yield.c - what does it cost to let the next ready thread run? N threads only yield;
 * wall-clock time / number of yields of all threads together. */
#include <sched.h>
#include <stdlib.h>

#include "crew.h"

struct run {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	uint64_t each;
	struct crew_gate gate;
};

static void *kb_main(void *arg)
{
	struct run *r = arg;

	crew_gate_wait(&r->gate);
	for (uint64_t n = r->each; n; n--)
		kb_yield();
	return NULL;
}

static void *posix_main(void *arg)
{
	struct run *r = arg;

	crew_gate_wait(&r->gate);
	for (uint64_t n = r->each; n; n--)
		sched_yield();
	return NULL;
}

static double once(void *arg, uint64_t each)
{
	struct run *r = arg;
	int posix = r->attr.kind == CREW_PTHREAD;

	r->each = each;
	crew_gate_init(&r->gate, r->attr.kind, r->c->threads + 1);
	for (unsigned i = 0; i < r->c->threads; i++)
		crew_create(&r->attr, r->attr.kind, &r->threads[i], posix ? posix_main : kb_main, r);
	crew_gate_wait(&r->gate);
	for (unsigned i = 0; i < r->c->threads; i++)
		crew_join(r->attr.kind, r->threads[i], NULL);
	return bench_now() - r->gate.start;
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { .c = c, .threads = bench_alloc(c->threads, sizeof(uintptr_t)) };

	crew_start(&r.attr, kind, c);
	bench_report("yield", "ns", bench_scale(c, once, &r) / c->threads * 1e9);
	free(r.threads);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_yield = {
	.name = "yield",
	.question = "wall time of one yield while all threads yield",
	.methods = methods,
	.threads = "2,1000",
	.vps = "1,cores",
	.reference = "nptl",
	.peers = 1,
};
