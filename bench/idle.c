/* bench/idle.c - how much of a CPU does an idle program use? N threads wait on a semaphore, main
 * sleeps for two seconds; processor time of the process in that time, in per cent of a CPU. */
#include <sys/resource.h>
#include <unistd.h>

#include "crew.h"

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void run(const struct bench_case *c, enum crew kind)
{
	unsigned made;
	int error;
	struct crew_park *p = crew_park(kind, c, &made, &error);

	if (error)
		bench_skip("only %u threads: %s", made, strerror(error));
	double start = bench_now(), before = cpu_seconds();
	crew_sleep(kind, c->seconds);
	bench_report("cpu", "%", (cpu_seconds() - before) / (bench_now() - start) * 100);
	crew_unpark(p);
}

CREW_WAYS(run)

static const struct bench_method methods[] = {
	{ "nptl", crew_nptl, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	CREW_KOCHAB,
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_idle = {
	.name = "idle",
	.question = "processor time of a program whose threads all wait",
	.methods = methods,
	.threads = "1000",
	.vps = "cores",
	.reference = NULL,
	.seconds = 2,
};
