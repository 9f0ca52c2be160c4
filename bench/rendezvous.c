/* bench/rendezvous.c - how long does a message take from a thread to a second thread that waits for
 * it? The ring of "Fast rendezvous by polling and lightweight threads" (section 2.2): 8-byte
 * messages, a buffer per thread; the ways of waiting of its sections 2.3, 4.2.1 to 4.2.3, and more.
 * This file has the table of the ways and their shared code; ring.h has the ring itself. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

#define KERNEL_MOST 20000u, "too many kernel threads"

static const struct bench_method methods[] = {
	{ "rtsig", ring_rtsig, 0, 0, BENCH_KERNEL, KERNEL_MOST, 0, 0 },
	{ "agent-rtsig", ring_agent_rtsig, 0, 0, BENCH_KERNEL | BENCH_FREE_ONLY, KERNEL_MOST, 2, 0 },
	{ "condvar", ring_condvar, 0, 0, BENCH_KERNEL, KERNEL_MOST, 0, 0 },
	{ "sem", ring_sem, 0, 0, BENCH_KERNEL, KERNEL_MOST, 0, 0 },
	{ "futex", ring_futex, 0, 0, BENCH_KERNEL, KERNEL_MOST, 0, 0 },
	{ "pipe", ring_pipe, 0, 0, BENCH_KERNEL, KERNEL_MOST, 0, 0 },
	{ "poll", ring_poll, 0, 0, BENCH_KERNEL | BENCH_CORES_1, 0, "does not finish", 0, 0 },
	{ "kochab", ring_kochab_light, 0, 0, 0, 0, 0, 0, 0 },
	{ "kochab-own", ring_kochab_own, 0, 0, 0, 0, 0, 0, 0 },
	{ "kochab-1", ring_kochab_light, 0, "KOCHAB_POLLERS=1", 0, 0, 0, 2, 0 },
	{ "kochab-posix", 0, "condvar", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ "kochab-posix-sem", 0, "sem", 0, BENCH_FREE_ONLY, 0, 0, 0, 0 },
	{ 0 },
};

const struct bench bench_rendezvous = {
	.name = "rendezvous",
	.question = "one-way latency of an 8-byte message in a ring of waiting threads",
	.methods = methods,
	.threads = "cores,cores+1,10,100,1000",
	.vps = "1,cores",
	.reference = "rtsig",
	.peers = 1,
};

void ring_prepare(struct ring *r, const struct bench_case *c, size_t node_size)
{
	if (c->threads < 2)
		bench_skip("a ring needs two threads");
	r->c = c;
	r->node_size = node_size;
	r->nodes = bench_alloc(c->threads, node_size);
	r->seats = bench_alloc(c->threads, sizeof *r->seats);
	for (unsigned i = 0; i < c->threads; i++) {
		r->seats[i].ring = r;
		r->seats[i].index = i;
	}
}

void ring_finish(struct ring *r)
{
	bench_report("one-way", "ns", r->seconds_per_hop * 1e9);
	free(r->nodes);
	free(r->seats);
}

void ring_broken(unsigned seat, uint64_t got, uint64_t want)
{
	bench_fail("thread %u received message %llu instead of %llu", seat, (unsigned long long)got,
		(unsigned long long)want);
}

static void place(pthread_attr_t *attr, int fixed, unsigned i, unsigned cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (fixed)
		CPU_SET(bench_cpu(i % cpus), &set);
	for (unsigned k = 0; !fixed && k < cpus; k++)
		CPU_SET(bench_cpu(k), &set);
	pthread_attr_setaffinity_np(attr, sizeof set, &set);
}

void ring_kernel_threads(
	const struct bench_case *c, size_t node_size, void *(*seat)(void *), unsigned cpus, int one_each)
{
	struct ring r = { 0 };
	pthread_attr_t attr;
	int e;

	ring_prepare(&r, c, node_size);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (unsigned i = 0; i < c->threads; i++) {
		if (c->spread || one_each || cpus < bench_cpus())
			place(&attr, c->spread || one_each, i, cpus);
		e = pthread_create(&r.seats[i].thread, &attr, seat, &r.seats[i]);
		if (e)
			bench_skip("pthread_create of thread %u: %s", i, strerror(e));
	}
	for (unsigned i = 0; i < c->threads; i++)
		pthread_join(r.seats[i].thread, NULL);
	pthread_attr_destroy(&attr);
	ring_finish(&r);
}
