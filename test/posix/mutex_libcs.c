/* The kinds that stay libc's: 16 threads exclude each other, also with a private condition
 * variable; the owner of a robust mutex ends. */
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 16, TIMES = 200 };

static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static volatile long counter;
static volatile int inside, turn;

static void make(int shared, int protocol, int robust, int type)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_setpshared(&a, shared), 0);
	CHECK_EQ(pthread_mutexattr_setprotocol(&a, protocol), 0);
	CHECK_EQ(pthread_mutexattr_setrobust(&a, robust), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
}

static void *add(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < TIMES; i++) {
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		CHECK_EQ(inside, 0);
		inside = 1;
		counter++;
		if (i % 16 == 0)
			sched_yield();
		inside = 0;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	while (turn != me)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	turn++;
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return NULL;
}

static void crowd(void)
{
	counter = turn = 0;
	crowd_run(add, THREADS);
	CHECK_EQ(counter, (long)THREADS * TIMES);
	CHECK_EQ(turn, THREADS);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void *end_with_it(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	return arg;
}

static void owner_ends(int consistent)
{
	pthread_t t;

	make(PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_NORMAL);
	CHECK_EQ(pthread_create(&t, NULL, end_with_it, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_mutex_lock(&m), EOWNERDEAD);
	if (consistent)
		CHECK_EQ(pthread_mutex_consistent(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_lock(&m), consistent ? 0 : ENOTRECOVERABLE);
	if (consistent)
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void *wait_for_it(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

static void *hold_and_end(void *arg)
{
	struct timespec t = { 0, 20000000 };

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	*(volatile int *)arg = 1;
	nanosleep(&t, NULL);
	return NULL;
}

static void owner_ends_before_waiters(void)
{
	volatile int held = 0;
	pthread_t a, b;

	make(PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, PTHREAD_MUTEX_NORMAL);
	CHECK_EQ(pthread_create(&a, NULL, hold_and_end, (void *)&held), 0);
	while (!held)
		sched_yield();
	CHECK_EQ(pthread_create(&b, NULL, wait_for_it, NULL), 0);
	CHECK_EQ(pthread_join(a, NULL), 0);
	CHECK_EQ(pthread_join(b, NULL), 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void *lock_timed(void *arg)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (t.tv_nsec + 30000000) / 1000000000;
	t.tv_nsec = (t.tv_nsec + 30000000) % 1000000000;
	CHECK_EQ(pthread_mutex_timedlock(&m, &t), ETIMEDOUT);
	return arg;
}

static void times_out(void)
{
	pthread_t t;

	make(PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED,
		PTHREAD_MUTEX_ERRORCHECK);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
	CHECK_EQ(pthread_create(&t, NULL, lock_timed, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

int main(void)
{
	make(PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_NORMAL);
	crowd();
	make(PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST,
		PTHREAD_MUTEX_ERRORCHECK);
	crowd();
	make(PTHREAD_PROCESS_PRIVATE, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED,
		PTHREAD_MUTEX_NORMAL);
	crowd();
	owner_ends(1);
	owner_ends(0);
	owner_ends_before_waiters();
	times_out();
	return 0;
}
