/* bench/preempt.c - threads that compute and make no call, more threads than processors.
 * Many threads, for 2 s (with --quick, too: fewer turns of each say nothing): "share" is the
 * distance of the thread furthest from the mean, in per cent of the mean; "wake-up" is how late a
 * thread beside them wakes that naps for 1 ms again and again, p99.
 * One thread more than processors: "piece" is the processor time of the whole process for a piece
 * of the work, the best of some windows that are much longer than a quantum. "kochab-posix-off"
 * runs this without a quantum: there the surplus thread has no turn, and the difference is the cost
 * of taking turns. */
#include <stdlib.h>
#include <time.h>

#include "compute.h"
#include "crew.h"

enum { NAP_NS = 1000000, NAPS = 10000 };

static const double window = 0.1; /* seconds: ten quanta */

struct seat {
	_Alignas(128) uint64_t pieces;
};

static struct {
	struct crew_attr attr;
	const struct bench_case *c;
	struct crew_gate gate;
	struct seat *seat;
	uintptr_t *thread;
	double end, *late;
	unsigned naps;
} r;

static void *computes(void *arg)
{
	struct seat *mine = arg;

	crew_gate_wait(&r.gate);
	while (bench_now() < r.end) {
		compute_piece();
		mine->pieces++;
	}
	return NULL;
}

static void *naps(void *unused)
{
	const struct timespec nap = { 0, NAP_NS };

	crew_gate_wait(&r.gate);
	for (r.naps = 0; r.naps < NAPS && bench_now() < r.end; r.naps++) {
		double start = bench_now();

		nanosleep(&nap, NULL);
		r.late[r.naps] = bench_now() - start - 1e-9 * NAP_NS;
	}
	return unused;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Lets all threads compute for `seconds`, with a napping thread beside them if `nap`. Returns the
 * process's processor time. */
static double together(double seconds, int nap)
{
	uintptr_t napping;

	memset(r.seat, 0, r.c->threads * sizeof *r.seat);
	crew_gate_init(&r.gate, CREW_PTHREAD, r.c->threads + 1 + (nap != 0));
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_create(&r.attr, CREW_PTHREAD, &r.thread[i], computes, &r.seat[i]);
	if (nap)
		crew_create(&r.attr, CREW_PTHREAD, &napping, naps, NULL);
	r.end = bench_now() + seconds;
	double before = cpu_seconds();
	crew_gate_wait(&r.gate);
	for (unsigned i = 0; i < r.c->threads; i++)
		crew_join(CREW_PTHREAD, r.thread[i], NULL);
	double took = cpu_seconds() - before;
	if (nap)
		crew_join(CREW_PTHREAD, napping, NULL);
	pthread_barrier_destroy(&r.gate.posix);
	return took;
}

static uint64_t pieces_of_all(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r.c->threads; i++)
		sum += r.seat[i].pieces;
	return sum;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void ask_share(void)
{
	double most = 0;

	r.late = bench_alloc(NAPS, sizeof *r.late);
	together(2, 1);
	double mean = (double)pieces_of_all() / r.c->threads;
	if (mean <= 0 || !r.naps)
		bench_fail("%u naps, %.1f pieces of each", r.naps, mean);
	for (unsigned i = 0; i < r.c->threads; i++) {
		double off = (double)r.seat[i].pieces / mean - 1;

		most = off > most ? off : -off > most ? -off : most;
	}
	bench_report("share", "%", most * 100);
	qsort(r.late, r.naps, sizeof *r.late, compare);
	bench_report("wake-up", "ms", r.late[(r.naps * 99 - 1) / 100] * 1e3);
	free(r.late);
}

static void ask_piece(void)
{
	unsigned windows = 2 + (unsigned)(r.c->seconds * 20);
	double best = 0;

	for (unsigned i = 0; i < windows; i++) {
		double each = together(window, 0) / (double)pieces_of_all();

		best = i && best < each ? best : each;
	}
	bench_report("piece", "ns", best * 1e9);
}

static void run(const struct bench_case *c)
{
	r.c = c;
	r.thread = bench_alloc(c->threads, sizeof *r.thread);
	r.seat = bench_alloc(c->threads, sizeof *r.seat);
	crew_start(&r.attr, CREW_PTHREAD, c);
	if (c->threads > c->vps + 1)
		ask_share();
	else
		ask_piece();
	free(r.thread);
	free(r.seat);
}

#define OFF BENCH_FREE_ONLY | BENCH_CORES_1

static const struct bench_method methods[] = {
	{ "nptl", run, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, 20000, "too many kernel threads", 0, 0 },
	{ "kochab-posix", 0, "nptl", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix-off", 0, "nptl", "KOCHAB_QUANTUM=0", OFF, 1, "who naps has no turn", 0, 0 },
	{ 0 },
};

const struct bench bench_preempt = {
	.name = "preempt",
	.question = "threads that compute: their shares, a sleeper's wake-up beside them, what taking turns costs",
	.methods = methods,
	.threads = "cores+1,32",
	.vps = "cores",
	.reference = "nptl",
};
