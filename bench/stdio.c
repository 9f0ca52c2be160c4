/* bench/stdio.c - what does a character cost? putc, which locks the stream for each character;
 * putc_unlocked, for one thread only; and many putc_unlocked between flockfile and funlockfile (the
 * lecture's naive and efficient program). One stream to /dev/null for all threads; wall-clock time
 * / number of characters of all threads together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "crew.h"

enum { AT_ONCE = 1000 }; /* characters per flockfile */

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	uintptr_t *threads;
	void (*write)(FILE *f);
	uint64_t each;
	FILE *f;
	struct crew_gate gate;
} r;

static void locked(FILE *f)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		putc('k', f);
}

static void unlocked(FILE *f)
{
	for (unsigned i = 0; i < AT_ONCE; i++)
		putc_unlocked('k', f);
}

static void in_one_lock(FILE *f)
{
	flockfile(f);
	unlocked(f);
	funlockfile(f);
}

static void *writer(void *arg)
{
	crew_gate_wait(&r.gate);
	for (uint64_t n = r.each; n; n--)
		r.write(r.f);
	return arg;
}

static double once(void *arg, uint64_t each)
{
	(void)arg;
	r.each = each;
	crew_gate_init(&r.gate, CREW_PTHREAD, r.c->threads + 1);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, CREW_PTHREAD, &r.threads[i], writer, NULL);
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(CREW_PTHREAD, r.threads[i], NULL);
	return bench_now() - r.gate.start;
}

static void run(const struct bench_case *c, void (*write)(FILE *f))
{
	r.c = c;
	r.write = write;
	r.threads = bench_alloc(c->threads, sizeof *r.threads);
	r.f = fopen("/dev/null", "we");
	if (!r.f)
		bench_skip("/dev/null: %s", strerror(errno));
	crew_start(&r.attr, CREW_PTHREAD, c);
	bench_report("putc", "ns", bench_scale(c, once, NULL) / c->threads / AT_ONCE * 1e9);
	if (fclose(r.f))
		bench_fail("/dev/null: %s", strerror(errno));
}

static void putc_locked(const struct bench_case *c)
{
	run(c, locked);
}

static void putc_unlocked_alone(const struct bench_case *c)
{
	run(c, unlocked);
}

static void putc_flockfile(const struct bench_case *c)
{
	run(c, in_one_lock);
}

#define ALONE 1, "is not thread-safe"

static const struct bench_method methods[] = {
	{ "putc", putc_locked, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "unlocked", putc_unlocked_alone, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, ALONE, 0, 0 },
	{ "flockfile", putc_flockfile, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-putc", 0, "putc", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-unlocked", 0, "unlocked", 0, BENCH_FREE_ONLY, ALONE, 0, 0 },
	{ "kochab-flockfile", 0, "flockfile", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_stdio = {
	.name = "stdio",
	.question = "a character to a stream: locked each, unlocked, many in one lock",
	.methods = methods,
	.threads = "1,16",
	.vps = "cores",
	.reference = "putc",
};
