/* bench/tls.c - thread-specific state: what do pthread_getspecific, pthread_setspecific and errno
 * cost? Time per call, by a thread that is not main. The address of errno is asked for anew each
 * time, as by code that the compiler cannot see. */
#include <errno.h>
#include <pthread.h>

#include "bench.h"

static struct {
	const struct bench_case *c;
	pthread_key_t key;
	int *(*volatile where)(void);
	double get, set, error;
} r;

static double reads(void *arg, uint64_t n)
{
	double start = bench_now();

	for (; n; n--)
		if (pthread_getspecific(r.key) != arg)
			bench_fail("pthread_getspecific: another thread's value");
	return bench_now() - start;
}

static double writes(void *arg, uint64_t n)
{
	double start = bench_now();

	for (; n; n--)
		if (pthread_setspecific(r.key, arg))
			bench_fail("pthread_setspecific fails");
	return bench_now() - start;
}

static double errors(void *arg, uint64_t n)
{
	double start = bench_now();

	(void)arg;
	for (; n; n--)
		*r.where() = (int)n;
	return bench_now() - start;
}

static void *measure(void *arg)
{
	r.set = bench_scale(r.c, writes, arg);
	r.get = bench_scale(r.c, reads, arg);
	r.error = bench_scale(r.c, errors, arg);
	return arg;
}

static void run(const struct bench_case *c)
{
	pthread_t t;

	r.c = c;
	r.where = __errno_location;
	if (pthread_key_create(&r.key, NULL) || pthread_create(&t, NULL, measure, &r) || pthread_join(t, NULL))
		bench_fail("no key, or no thread");
	bench_report("getspecific", "ns", r.get * 1e9);
	bench_report("setspecific", "ns", r.set * 1e9);
	bench_report("errno", "ns", r.error * 1e9);
}

static const struct bench_method methods[] = {
	{ "nptl", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_tls = {
	.name = "tls",
	.question = "thread-specific data and errno: time per call",
	.methods = methods,
	.threads = "1",
	.vps = "1,cores",
	.reference = "nptl",
};
