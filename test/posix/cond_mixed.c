/* posix/cond: a process-shared condition variable with a private mutex, which libc takes. Main
 * alone, with a time limit; many threads pass a turn on through it, and none is lost; a mutex of
 * each type; a cancelled waiter holds the mutex. */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { THREADS = 40, ROUNDS = 25 };

static pthread_cond_t c;
static pthread_mutex_t m;
static int turn, left;

static void *take_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		while (turn % THREADS != me)
			CHECK_EQ(pthread_cond_wait(&c, &m), 0);
		turn++;
		CHECK_EQ(pthread_cond_broadcast(&c), 0);
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	return NULL;
}

static void unlock(void *unused)
{
	(void)unused;
	left = pthread_mutex_unlock(&m) == 0;
}

static void *wait_for_ever(void *unused)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	pthread_cleanup_push(unlock, NULL);
	turn = -1;
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return unused;
}

static void check_time(void)
{
	struct timespec at;

	CHECK_EQ(clock_gettime(CLOCK_REALTIME, &at), 0);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	while (pthread_cond_timedwait(&c, &m, &at) != ETIMEDOUT)
		;
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void check_cancelled(void)
{
	void *result;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, wait_for_ever, NULL), 0);
	for (int there = 0; !there;) {
		sched_yield();
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		there = turn == -1;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	CHECK_EQ(pthread_cancel(t), 0);
	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQ(left, 1);
}

static void check_type(int type)
{
	pthread_mutexattr_t a;

	turn = left = 0;
	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	check_time();
	crowd_run(take_turns, THREADS);
	CHECK_EQ(turn, THREADS * ROUNDS);
	check_cancelled();
	check_time();
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

int main(void)
{
	pthread_condattr_t a;

	CHECK_EQ(pthread_condattr_init(&a), 0);
	CHECK_EQ(pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_cond_init(&c, &a), 0);
	check_type(PTHREAD_MUTEX_NORMAL);
	check_type(PTHREAD_MUTEX_RECURSIVE);
	check_type(PTHREAD_MUTEX_ERRORCHECK);
	check_type(PTHREAD_MUTEX_ADAPTIVE_NP);
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	return 0;
}
