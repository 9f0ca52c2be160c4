/* bench/pollers.c - how many virtual processors should poll at once? The Fujitsu paper (section
 * 3.2) leaves the number to the wanted performance and power. The bench runs the paper's ring with
 * neighbours on different virtual processors, so that all wait most of the time; option pollers
 * goes from 1, the paper's exclusive agent, to all. Costs: one-way latency, the processor time of a
 * message and, where the machine measures it (RAPL by powercap), the energy of a message. */
#include <sys/resource.h>

#include "ring.h"

static struct {
	double cpu, joules;
} begun;

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Of all processor packages; negative: not to be read here. */
static double joules(void)
{
	double sum = 0;
	unsigned n = 0;

	for (;; n++) {
		char path[64];
		unsigned long long microjoules;
		FILE *f;
		int got;

		snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%u/energy_uj", n);
		f = fopen(path, "re");
		if (!f)
			break;
		got = fscanf(f, "%llu", &microjoules);
		fclose(f);
		if (got != 1)
			return -1;
		sum += (double)microjoules * 1e-6;
	}
	return n ? sum : -1;
}

static void begins(struct ring *r)
{
	(void)r;
	begun.cpu = cpu_seconds();
	begun.joules = joules();
}

/* A counter that has begun anew says nothing. */
static void measured(struct ring *r, double hops)
{
	double j = joules();

	(void)r;
	bench_report("cpu", "ns", (cpu_seconds() - begun.cpu) / hops * 1e9);
	if (j >= 0 && begun.joules >= 0 && j >= begun.joules)
		bench_report("energy", "nJ", (j - begun.joules) / hops * 1e9);
	else
		printf("{\"note\": \"energy: not readable here\"}\n");
}

static void run(const struct bench_case *c)
{
	struct ring r = { .begins = begins, .measured = measured };
	struct bench_case apart = *c;

	apart.spread = 1;
	ring_kochab_run(&r, &apart, 0);
}

#define POLLERS(n) { "pollers-" #n, run, 0, "KOCHAB_POLLERS=" #n, BENCH_FREE_ONLY, 0, 0, n, 0 }

static const struct bench_method methods[] = {
	POLLERS(1),
	POLLERS(2),
	POLLERS(3),
	POLLERS(4),
	POLLERS(8),
	POLLERS(16),
	POLLERS(32),
	POLLERS(64),
	{ "pollers-all", run, 0, "KOCHAB_POLLERS=0", BENCH_FREE_ONLY, 0, 0, 2, 0 },
	{ 0 },
};

const struct bench bench_pollers = {
	.name = "pollers",
	.question = "a message between virtual processors of which so many may poll: time, processor time, energy",
	.methods = methods,
	.threads = "cores,100",
	.vps = "cores",
	.reference = "pollers-all",
};
