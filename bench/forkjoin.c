/* bench/forkjoin.c - what does recursive parallelism cost? fib(n), each call of which creates a
 * thread for fib(n-1), computes fib(n-2) itself and joins; time / number of threads created.
 * `threads` asks for at least so many of them: the smallest n that gives them is taken. Kernel
 * threads: a small n. */
#include <stdlib.h>

#include "crew.h"

static struct crew_attr attr;

/* The result and the argument travel as pointers. */
CREW_INLINE void *fib_call(enum crew kind, void *(*self)(void *), void *arg)
{
	uintptr_t n = (uintptr_t)arg, thread;
	void *a;

	if (n < 2)
		return arg;
	crew_create(&attr, kind, &thread, self, (void *)(n - 1));
	uintptr_t b = (uintptr_t)self((void *)(n - 2));
	crew_join(kind, thread, &a);
	return (void *)((uintptr_t)a + b);
}

static void *fib_kb(void *arg)
{
	return fib_call(CREW_LIGHT, fib_kb, arg);
}

static void *fib_posix(void *arg)
{
	return fib_call(CREW_PTHREAD, fib_posix, arg);
}

static uintptr_t fib_plain(unsigned n)
{
	uintptr_t a = 0, b = 1;

	for (; n; n--) {
		uintptr_t c = a + b;
		a = b;
		b = c;
	}
	return a;
}

struct run {
	unsigned n;
	void *(*fib)(void *);
};

static double once(void *arg, uint64_t rounds)
{
	struct run *r = arg;
	double start = bench_now();

	for (; rounds; rounds--) {
		uintptr_t got = (uintptr_t)r->fib((void *)(uintptr_t)r->n);
		if (got != fib_plain(r->n))
			bench_fail("fib(%u) = %lu", r->n, (unsigned long)got);
	}
	return bench_now() - start;
}

static void run(const struct bench_case *c, enum crew kind)
{
	struct run r = { 2, kind == CREW_PTHREAD ? fib_posix : fib_kb };

	while (fib_plain(r.n + 1) - 1 < c->threads) /* fib(n) creates F(n+1) - 1 threads */
		r.n++;
	crew_start(&attr, kind, c);
	bench_report("thread", "ns", bench_scale(c, once, &r) / (double)(fib_plain(r.n + 1) - 1) * 1e9);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY | BENCH_CLAMP, 500, 0, 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY | BENCH_CLAMP, 10000, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_forkjoin = {
	.name = "forkjoin",
	.question = "fib with a thread per call: time per thread",
	.methods = methods,
	.threads = "100000",
	.vps = "1,cores",
	.reference = NULL,
	.peers = 1,
};
