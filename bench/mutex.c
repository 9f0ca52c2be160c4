/* bench/mutex.c - what does a mutex cost, uncontended (one thread) and with 16 threads that do nothing
 * but lock it, count and unlock? Wall-clock time / number of lock+unlock pairs of all threads together.
 * The count is checked. */
#include <stdlib.h>

#include "crew.h"

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	uint64_t each;
	struct crew_gate gate;
	_Alignas(64) pthread_mutex_t posix;
	_Alignas(64) kb_mutex_t kb;
	_Alignas(64) uint64_t count;
} r;

static void *kb_main(void *arg)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		kb_mutex_lock(&r.kb);
		r.count++;
		kb_mutex_unlock(&r.kb);
	}
	return arg;
}

static void *posix_main(void *arg)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--) {
		pthread_mutex_lock(&r.posix);
		r.count++;
		pthread_mutex_unlock(&r.posix);
	}
	return arg;
}

static double once(void *arg, uint64_t each)
{
	void *(*fn)(void *) = r.attr.kind == CREW_PTHREAD ? posix_main : kb_main;
	(void)arg;
	r.each = each;
	r.count = 0;
	crew_gate_init(&r.gate, r.attr.kind, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, r.attr.kind, &r.threads[i], fn, NULL);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(r.attr.kind, r.threads[i], NULL);
	double took = bench_now() - r.gate.start;
	if (r.count != each * r.c->threads)
		bench_fail("the mutex let two threads in: %llu of %llu", (unsigned long long)r.count,
			(unsigned long long)(each * r.c->threads));
	return took;
}

static void run(const struct bench_case *c, enum crew kind)
{
	r.c = c;
	r.threads = bench_alloc(c->threads, sizeof(uintptr_t));
	pthread_mutex_init(&r.posix, NULL);
	crew_start(&r.attr, kind, c);
	kb_mutex_init(&r.kb, KB_MUTEX_NORMAL);
	bench_report("lock+unlock", "ns", bench_scale(c, once, NULL) / c->threads * 1e9);
	free(r.threads);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_mutex = {
	.name = "mutex",
	.question = "lock, count, unlock: wall time per pair of all threads together",
	.methods = methods,
	.threads = "1,16",
	.vps = "1,cores",
	.reference = "nptl",
	.peers = 1,
};
