/* tool/bench_child.c - the measuring process: `bench --measure QUESTION METHOD THREADS VPS
 * free|spread SECONDS SIZE`, started by tool/bench_run.c. Runs a method once and writes a JSON line
 * for each metric to standard output. Exit status: 0 measured, 1 wrong result, 77 not possible
 * here. Kernel-thread methods run plain pthread code and never start Kochab. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "bench_child.h"
#include "tool.h"

void bench_report(const char *metric, const char *unit, double value)
{
	printf("{\"metric\": \"%s\", \"unit\": \"%s\", \"value\": ", metric, unit);
	tool_json_number(stdout, value);
	puts("}");
	fflush(stdout);
}

void bench_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("kochab bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	_Exit(BENCH_EXIT_WRONG);
}

static void say_note(const char *fmt, va_list ap)
{
	char why[BENCH_WORD];

	vsnprintf(why, sizeof why, fmt, ap);
	fputs("{\"note\": ", stdout);
	tool_json_string(why);
	puts("}");
	fflush(stdout);
}

void bench_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_note(fmt, ap);
	va_end(ap);
}

void bench_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_note(fmt, ap);
	va_end(ap);
	_Exit(BENCH_EXIT_SKIP);
}

double bench_now(void)
{
	return tool_now();
}

unsigned bench_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

int bench_cpu(unsigned i)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set))
		return 0;
	i %= (unsigned)CPU_COUNT(&set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && i-- == 0)
			return cpu;
	return 0;
}

double bench_scale(const struct bench_case *c, double (*once)(void *arg, uint64_t n), void *arg)
{
	uint64_t n = 1;

	for (int warm = 0;; warm = 1) {
		double took = once(arg, n);

		if (warm && took >= 0.8 * c->seconds)
			return took / (double)n;
		double more = took > 0 ? c->seconds / took : 16;
		more = more > 16 ? 16 : more < 1.5 ? 1.5 : more;
		if (took < 0.8 * c->seconds)
			n = (uint64_t)((double)n * more + 0.5);
	}
}

void *bench_alloc(size_t count, size_t size)
{
	size_t bytes = (count * size + 127) & ~(size_t)127;
	void *p = aligned_alloc(128, bytes);

	if (!p)
		bench_skip("no memory for %zu bytes", bytes);
	memset(p, 0, bytes);
	return p;
}

static void *run_vp_probe(void *vp_self)
{
	return (void *)(intptr_t)((int (*)(void))(uintptr_t)vp_self)();
}

/* Under the drop-in a thread of pthread_create runs on a VP. A drop-in that fell back to kernel
 * threads must not have its figures taken for Kochab's. */
void bench_require_drop_in(void)
{
	void *vp_self = dlsym(RTLD_DEFAULT, "kb_vp_self"), *vp = NULL;
	pthread_t thread;

	if (!vp_self)
		bench_fail("the drop-in is not loaded");
	if (pthread_create(&thread, NULL, run_vp_probe, vp_self) || pthread_join(thread, &vp))
		bench_fail("the drop-in cannot create a thread");
	if ((intptr_t)vp < 0)
		bench_fail("the drop-in runs kernel threads");
}

int bench_child(int argc, char **argv)
{
	struct bench_case c = { 0 };

	if (argc < 7)
		return 2;
	const struct bench *b = bench_find(argv[0]);
	const struct bench_method *m = b ? bench_method_find(b, argv[1]) : NULL;
	if (m && m->as) {
		bench_require_drop_in();
		m = bench_method_find(b, m->as);
	}
	if (!m || !m->run)
		return 2;
	c.threads = (unsigned)strtoul(argv[2], NULL, 10);
	c.vps = (unsigned)strtoul(argv[3], NULL, 10);
	c.spread = strcmp(argv[4], "spread") == 0;
	c.seconds = strtod(argv[5], NULL);
	c.size = (unsigned)strtoul(argv[6], NULL, 10);
	m->run(&c);
	return 0;
}
