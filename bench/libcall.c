/* bench/libcall.c - what does a system call of libc cost where virtual processors are processes and
 * the call is intercepted, by each way to intercept it? Two calls that return a number: getppid is
 * intercepted, getuid is not. A single thread. */
#include <string.h>
#include <unistd.h>

#include <kochab/kochab.h>

#include "bench.h"

static double taken(void *unused, uint64_t each)
{
	double start = bench_now();

	(void)unused;
	for (uint64_t n = each; n; n--)
		getppid();
	return bench_now() - start;
}

static double others(void *unused, uint64_t each)
{
	double start = bench_now();

	(void)unused;
	for (uint64_t n = each; n; n--)
		getuid();
	return bench_now() - start;
}

static void run(const struct bench_case *c)
{
	bench_report("taken over", "ns", bench_scale(c, taken, NULL) * 1e9);
	bench_report("others", "ns", bench_scale(c, others, NULL) * 1e9);
}

static void in_process(const struct bench_case *c)
{
	int e = kb_init();

	if (e)
		bench_skip("kb_init: %s", strerror(e));
	run(c);
}

static const struct bench_method methods[] = {
	{ "libc", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "patch", in_process, 0, "KOCHAB_BODY=process KOCHAB_LIBCALLS=patch", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "dispatch", in_process, 0, "KOCHAB_BODY=process KOCHAB_LIBCALLS=dispatch", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "seccomp", in_process, 0, "KOCHAB_BODY=process KOCHAB_LIBCALLS=seccomp", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_libcall = {
	.name = "libcall",
	.question = "time of a system call of libc's where virtual processors are processes",
	.methods = methods,
	.threads = "1",
	.vps = "1",
	.reference = "libc",
};
