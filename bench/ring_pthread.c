/* bench/ring_pthread.c - waiting the way pthread programs do: condition variable, semaphore. The
 * same code is measured on kernel threads (condvar, sem) and, unmodified, under the drop-in
 * (kochab-posix, kochab-posix-sem). */
#include <semaphore.h>

#include "ring.h"

struct cond_node {
	_Alignas(64) pthread_mutex_t mutex;
	pthread_cond_t cond;
	uint64_t message;
	int full;
};

static void cond_make(void *p)
{
	struct cond_node *n = p;

	pthread_mutex_init(&n->mutex, NULL);
	pthread_cond_init(&n->cond, NULL);
}

RING_INLINE void cond_send(void *p, uint64_t message)
{
	struct cond_node *n = p;

	pthread_mutex_lock(&n->mutex);
	n->message = message;
	n->full = 1;
	pthread_cond_signal(&n->cond);
	pthread_mutex_unlock(&n->mutex);
}

RING_INLINE uint64_t cond_receive(void *p)
{
	struct cond_node *n = p;

	pthread_mutex_lock(&n->mutex);
	while (!n->full)
		pthread_cond_wait(&n->cond, &n->mutex);
	n->full = 0;
	uint64_t message = n->message;
	pthread_mutex_unlock(&n->mutex);
	return message;
}

static void *cond_seat(void *seat)
{
	return ring_sit(seat, cond_make, cond_send, cond_receive, ring_yield);
}

void ring_condvar(const struct bench_case *c)
{
	ring_kernel_threads(c, sizeof(struct cond_node), cond_seat, bench_cpus(), 0);
}

struct sem_node {
	_Alignas(64) sem_t sem;
	uint64_t message;
};

static void sem_make(void *p)
{
	sem_init(&((struct sem_node *)p)->sem, 0, 0);
}

RING_INLINE void sem_send(void *p, uint64_t message)
{
	struct sem_node *n = p;

	n->message = message;
	sem_post(&n->sem);
}

RING_INLINE uint64_t sem_receive(void *p)
{
	struct sem_node *n = p;

	while (sem_wait(&n->sem))
		; /* EINTR */
	return n->message;
}

static void *sem_seat(void *seat)
{
	return ring_sit(seat, sem_make, sem_send, sem_receive, ring_yield);
}

void ring_sem(const struct bench_case *c)
{
	ring_kernel_threads(c, sizeof(struct sem_node), sem_seat, bench_cpus(), 0);
}
