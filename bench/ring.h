/* bench/ring.h - the paper's experiment: n threads in a ring pass an 8-byte message on. Each thread has
 * a buffer (node) of its own; it waits for a message there, reads it and sends the next one to its
 * neighbour. One-way latency = time between two sends of one thread / number of threads. The message is
 * the number of the hop, which every thread checks: a lost, doubled or stale message fails the bench
 * (a lost one by the driver's time limit). A way of waiting is three functions: make, send, receive. */
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

/* Allocates nodes, runs `seat` on n kernel threads on the first `cpus` CPUs, reports. one_each: each is
 * bound to one CPU. */
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

/* Seat 0: `rounds` times round the ring; the hops carry seq+1 ... seq+rounds*n. */
RING_INLINE double ring_lap(struct ring *r, void *self, void *next, uint64_t rounds, uint64_t *seq,
	void (*send)(void *, uint64_t), uint64_t (*receive)(void *))
{
	uint64_t n = r->c->threads, hop = *seq;
	double start = bench_now();

	for (; rounds; rounds--, hop += n) {
		send(next, hop + 1);
		uint64_t got = receive(self);
		if (got != hop + n)
			ring_broken(0, got, hop + n);
	}
	*seq = hop;
	return bench_now() - start;
}

/* Seat 0 doubles the rounds until they take long enough: what came before was the warm-up. */
RING_INLINE void ring_lead(struct ring *r, void *self, void *next, void (*send)(void *, uint64_t),
	uint64_t (*receive)(void *), void (*relax)(void))
{
	uint64_t rounds = 1, seq = 0;
	double took;

	while (__atomic_load_n(&r->ready, __ATOMIC_ACQUIRE) != r->c->threads) /* with ring_sit's add */
		relax();
	ring_lap(r, self, next, 1, &seq, send, receive);
	for (;;) {
		took = ring_lap(r, self, next, rounds, &seq, send, receive);
		if (took >= 0.8 * r->c->seconds)
			break;
		rounds *= took < 0.1 * r->c->seconds ? 4 : 2;
	}
	r->seconds_per_hop = took / ((double)rounds * r->c->threads);
	send(next, RING_STOP);
}

RING_INLINE void ring_follow(struct ring *r, unsigned i, void *self, void *next,
	void (*send)(void *, uint64_t), uint64_t (*receive)(void *))
{
	uint64_t n = r->c->threads, want = i, got;

	for (; !((got = receive(self)) & RING_STOP); want += n) {
		if (got != want)
			ring_broken(i, got, want);
		send(next, got + 1);
	}
	if (i + 1 < n)
		send(next, RING_STOP);
}

RING_INLINE void *ring_sit(struct ring_seat *seat, void (*make)(void *), void (*send)(void *, uint64_t),
	uint64_t (*receive)(void *), void (*relax)(void))
{
	struct ring *r = seat->ring;
	void *self = ring_node(r, seat->index), *next = ring_node(r, seat->index + 1);

	make(self);
	__atomic_add_fetch(&r->ready, 1, __ATOMIC_RELEASE); /* the node is made: with ring_lead's load */
	if (seat->index == 0)
		ring_lead(r, self, next, send, receive, relax);
	else
		ring_follow(r, seat->index, self, next, send, receive);
	return NULL;
}

static inline void ring_yield(void)
{
	sched_yield();
}

#endif
