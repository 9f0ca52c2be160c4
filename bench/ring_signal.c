/* bench/ring_signal.c - waiting by POSIX real-time signals, as in the paper: pthread_kill + sigwait
 * directly (4.2.1), and through a polling agent, a thread on a CPU of its own that watches
 * everybody's notification byte and sends the signal (4.2.2). */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

struct node {
	_Alignas(64) uint64_t message;
	pthread_t thread;
	unsigned char *notify; /* the agent's byte for this thread */
	sigset_t set;
};

static struct {
	unsigned char *bytes; /* one per thread, padded to whole words */
	struct node *nodes;
	unsigned count;
	unsigned stop;
} agent;

static void make(void *p)
{
	struct node *n = p;

	n->thread = pthread_self();
	sigemptyset(&n->set);
	sigaddset(&n->set, SIGRTMIN);
}

static void agent_make(void *p)
{
	struct node *n = p;

	make(p);
	n->notify = agent.bytes + (n - __atomic_load_n(&agent.nodes, __ATOMIC_RELAXED));
}

RING_INLINE void signal_send(void *p, uint64_t message)
{
	struct node *n = p;

	__atomic_store_n(&n->message, message, __ATOMIC_RELEASE); /* with receive's load */
	pthread_kill(n->thread, SIGRTMIN);
}

RING_INLINE void agent_send(void *p, uint64_t message)
{
	struct node *n = p;

	__atomic_store_n(&n->message, message, __ATOMIC_RELEASE); /* with receive's load */
	__atomic_store_n(n->notify, 1, __ATOMIC_RELEASE);         /* with deliver's load */
}

RING_INLINE uint64_t receive(void *p)
{
	struct node *n = p;
	int sig;

	sigwait(&n->set, &sig);
	return __atomic_load_n(&n->message, __ATOMIC_ACQUIRE); /* with the sender's store */
}

static void *signal_seat(void *seat)
{
	return ring_sit(seat, make, signal_send, receive, ring_yield);
}

static void *agent_seat(void *seat)
{
	struct ring *r = ((struct ring_seat *)seat)->ring;

	__atomic_store_n(&agent.nodes, (struct node *)r->nodes, __ATOMIC_RELAXED);
	return ring_sit(seat, agent_make, agent_send, receive, ring_yield);
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void ring_rtsig(const struct bench_case *c)
{
	block_signal();
	ring_kernel_threads(c, sizeof(struct node), signal_seat, bench_cpus(), 0);
}

static void deliver(unsigned first)
{
	for (unsigned i = first; i < first + 8; i++)
		if (__atomic_load_n(&agent.bytes[i], __ATOMIC_ACQUIRE)) { /* with agent_send's store */
			__atomic_store_n(&agent.bytes[i], 0, __ATOMIC_RELAXED);
			pthread_kill(agent.nodes[i].thread, SIGRTMIN);
		}
}

static void *agent_main(void *arg)
{
	uint64_t *words = (uint64_t *)(void *)agent.bytes;

	while (!__atomic_load_n(&agent.stop, __ATOMIC_ACQUIRE)) /* with ring_agent_rtsig's store */
		for (unsigned i = 0; i < agent.count; i += 8)
			if (__atomic_load_n(&words[i / 8], __ATOMIC_RELAXED))
				deliver(i);
	return arg;
}

void ring_agent_rtsig(const struct bench_case *c)
{
	unsigned others = bench_cpus() - 1;
	pthread_t thread;
	pthread_attr_t attr;
	cpu_set_t set;

	if (others == 0)
		bench_skip("the agent needs a CPU of its own");
	block_signal();
	agent.count = (c->threads + 7) & ~7u;
	agent.bytes = bench_alloc(agent.count, 1);
	CPU_ZERO(&set);
	CPU_SET(bench_cpu(others), &set);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof set, &set);
	if (pthread_create(&thread, &attr, agent_main, NULL))
		bench_skip("cannot create the agent");
	ring_kernel_threads(c, sizeof(struct node), agent_seat, others, 0);
	__atomic_store_n(&agent.stop, 1, __ATOMIC_RELEASE); /* with agent_main's load */
	pthread_join(thread, NULL);
}
