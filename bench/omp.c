/* bench/omp.c - the cost of OpenMP's own steps. After EPCC's syncbench: an empty parallel region, a
 * barrier, a critical section, all by a team of `threads`, and a nested region of eight threads
 * inside a team of four. libgomp is asked by the entries that gcc calls for the directives, so no
 * compiler is needed. Wall-clock time / number of steps; of critical sections, of all threads
 * together. */
#include <string.h>

#include "bench.h"
#include "gomp.h"

enum { OUTER = 4, INNER = 8 };

static struct gomp omp;

static struct {
	const struct bench_case *c;
	uint64_t each;
	long entered;
} r;

static void load(void)
{
	const char *missing = gomp_load(&omp);

	if (missing)
		bench_skip("no %s", missing);
	omp.dynamic(0);
	omp.levels(2);
}

static void nothing(void *unused)
{
	(void)unused;
}

static double regions(void *unused, uint64_t n)
{
	double start = bench_now();

	for (; n; n--)
		omp.parallel(nothing, unused, r.c->threads, 0);
	return bench_now() - start;
}

static void meet(void *unused)
{
	(void)unused;
	for (uint64_t n = r.each; n; n--)
		omp.barrier();
}

static void enter(void *unused)
{
	(void)unused;
	for (uint64_t n = r.each; n; n--) {
		omp.critical_start();
		r.entered++;
		omp.critical_end();
	}
}

/* The measured time includes a region: many steps in each. */
static double inside(void *step, uint64_t n)
{
	void (*fn)(void *);
	double start;

	memcpy(&fn, step, sizeof fn);
	r.each = n;
	start = bench_now();
	omp.parallel(fn, NULL, r.c->threads, 0);
	return bench_now() - start;
}

static double criticals(void *step, uint64_t n)
{
	double took;

	r.entered = 0;
	took = inside(step, n);
	if ((uint64_t)r.entered != n * r.c->threads)
		bench_fail("%ld were in the critical section instead of %lu", r.entered, (unsigned long)(n * r.c->threads));
	return took;
}

static void outer(void *unused)
{
	(void)unused;
	for (uint64_t n = r.each; n; n--)
		omp.parallel(nothing, NULL, INNER, 0);
}

static double nested(void *unused, uint64_t n)
{
	double start = bench_now();

	(void)unused;
	r.each = n;
	omp.parallel(outer, NULL, OUTER, 0);
	return bench_now() - start;
}

static void run(const struct bench_case *c)
{
	void (*step)(void *);

	r.c = c;
	load();
	bench_report("region", "us", bench_scale(c, regions, NULL) * 1e6);
	step = meet;
	bench_report("barrier", "us", bench_scale(c, inside, &step) * 1e6);
	step = enter;
	bench_report("critical", "us", bench_scale(c, criticals, &step) / c->threads * 1e6);
	bench_report("nested", "us", bench_scale(c, nested, NULL) / OUTER * 1e6);
}

static const struct bench_method methods[] = {
	{ "nptl", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix", 0, "nptl", "GOMP_SPINCOUNT=0", BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_omp = {
	.name = "omp",
	.question = "steps of OpenMP, by gcc's library: a region, a barrier, a critical section, a nested region",
	.methods = methods,
	.threads = "2,16,64",
	.vps = "1,cores",
	.reference = "nptl",
};
