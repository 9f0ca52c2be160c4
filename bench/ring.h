/* bench/ring.h - the paper's experiment: n threads in a ring pass an 8-byte message on. Each thread
 * has its own buffer (node); it waits there for a message, reads it and sends the next message to
 * its neighbour. One-way latency = time between two sends of one thread / number of threads. The
 * message is the number of the hop, which every thread checks: a lost, doubled or stale message
 * fails the bench (a lost message by the driver's time limit). A way of waiting is three functions:
 * make, send, receive. */
#ifndef KOCHAB_BENCH_RING_H
#define KOCHAB_BENCH_RING_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include "bench.h"

#define RING_INLINE static inline __attribute__((always_inline))

struct ring {
	const struct bench_case *c;
	size_t node_size;
	char *nodes;
	unsigned ready;
	double seconds_per_hop;
	void (*measured)(struct ring *r, double hops); /* NULL, or called at the end of the lap that counts */
	void (*begins)(struct ring *r);                /* NULL, or at the begin of each lap */
	struct ring_seat *seats;
};

struct ring_seat {
	struct ring *ring;
	unsigned index;
	uintptr_t thread;
};

/* The ways, each in a file of its own; a function per row of bench/rendezvous.c. */
void ring_rtsig(const struct bench_case *c);
void ring_agent_rtsig(const struct bench_case *c);
void ring_condvar(const struct bench_case *c);
void ring_futex(const struct bench_case *c);
void ring_pipe(const struct bench_case *c);
void ring_sem(const struct bench_case *c);
void ring_poll(const struct bench_case *c);
void ring_kochab_light(const struct bench_case *c);
void ring_kochab_own(const struct bench_case *c);
/* Light threads on a ring that the caller has begun. */
void ring_kochab_run(struct ring *r, const struct bench_case *c, int own);

/* Allocates nodes, runs `seat` on n kernel threads on the first `cpus` CPUs, reports. one_each:
 * each kernel thread is bound to one CPU. */
void ring_kernel_threads(
	const struct bench_case *c, size_t node_size, void *(*seat)(void *), unsigned cpus, int one_each);
void ring_prepare(struct ring *r, const struct bench_case *c, size_t node_size);
void ring_finish(struct ring *r);
void ring_broken(unsigned seat, uint64_t got, uint64_t want) __attribute__((noreturn));

#define RING_STOP (UINT64_C(1) << 63)

static inline void *ring_node(const struct ring *r, unsigned i)
{
	return r->nodes + (size_t)(i % r->c->threads) * r->node_size;
}

/* Seat 0 measures laps of `rounds` rounds, with more rounds each time until a lap takes long
 * enough: earlier laps were the warm-up. A lap that is faster per round than the lap before counts
 * as warm-up, too, for RING_WARM at most: a round of 100,000 threads takes as long as a short
 * measurement, and the caches need ten rounds. */
struct ring_clock {
	uint64_t rounds; /* of this lap */
	double start, warm, each; /* s; of the warm-up, and a round of the lap before */
};
#define RING_WARM 1.0 /* s */

/* Ends a lap. Returns the rounds of the next lap, or 0 if the measurement is finished. */
static __attribute__((noinline, unused)) uint64_t ring_clock_lap(struct ring_clock *k, struct ring *r)
{
	double took = bench_now() - k->start, each = took / (double)k->rounds;
	int warms = (k->each == 0 || each < 0.9 * k->each) && k->warm < RING_WARM, enough = took >= 0.8 * r->c->seconds;

	if (enough && !warms) {
		r->seconds_per_hop = took / ((double)k->rounds * r->c->threads);
		if (r->measured)
			r->measured(r, (double)k->rounds * r->c->threads);
		return 0;
	}
	k->warm += took;
	k->each = each;
	k->rounds *= enough ? 1 : took < 0.1 * r->c->seconds ? 4 : 2;
	if (r->begins)
		r->begins(r);
	k->start = bench_now();
	return k->rounds;
}

/* Every seat runs one loop, as the paper's threads do; seat 0 sends the first message and the last. */
RING_INLINE void *ring_sit(struct ring_seat *seat, void (*make)(void *), void (*send)(void *, uint64_t),
	uint64_t (*receive)(void *), void (*relax)(void))
{
	struct ring *r = seat->ring;
	void *self = ring_node(r, seat->index), *next = ring_node(r, seat->index + 1);
	uint64_t n = r->c->threads, want = seat->index, left = UINT64_MAX, got;
	struct ring_clock clock = { 1, 0, 0, 0 };

	make(self);
	__atomic_add_fetch(&r->ready, 1, __ATOMIC_RELEASE); /* the node is made: with the load below */
	if (seat->index == 0) {
		while (__atomic_load_n(&r->ready, __ATOMIC_ACQUIRE) != n)
			relax();
		want = n;
		left = 1;
		clock.start = bench_now();
		send(next, 1);
	}
	for (;; want += n) {
		got = receive(self);
		if (got & RING_STOP)
			break;
		if (got != want)
			ring_broken(seat->index, got, want);
		if (--left == 0 && (left = ring_clock_lap(&clock, r)) == 0)
			break;
		send(next, got + 1);
	}
	if (seat->index + 1 < n)
		send(next, RING_STOP);
	return NULL;
}

static inline void ring_yield(void)
{
	sched_yield();
}

#endif
