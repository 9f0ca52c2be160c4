/* Robust mutexes and cancellation. A thread that is cancelled while it holds a robust mutex leaves
 * the mutex EOWNERDEAD, unless its cleanup handler unlocks the mutex. A thread that is cancelled
 * while it waits for a mutex (no cancellation point) gets the mutex first. In a condition wait the
 * handler finds the robust mutex locked. PI mutexes behave alike. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t held;
static int cleaned;

static void make(int protocol)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setprotocol(&a, protocol);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	pthread_mutexattr_destroy(&a);
}

static void unlock(void *arg)
{
	cleaned++;
	CHECK_EQ(pthread_mutex_unlock(arg), 0);
}

static void *keeps(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	pthread_barrier_wait(&held);
	pause();
	return arg;
}

static void *gives_back(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	pthread_cleanup_push(unlock, &m);
	pthread_barrier_wait(&held);
	pause();
	pthread_cleanup_pop(0);
	return arg;
}

static void *asks(void *arg)
{
	pthread_barrier_wait(&held);
	CHECK_EQ(pthread_mutex_lock(&m), 0); /* no cancellation point */
	pthread_cleanup_push(unlock, &m);
	pthread_testcancel();
	CHECK(0);
	pthread_cleanup_pop(0);
	return arg;
}

static void *waits(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	pthread_cleanup_push(unlock, &m);
	pthread_barrier_wait(&held);
	for (;;)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	pthread_cleanup_pop(0);
	return arg;
}

static void cancelled(pthread_t t)
{
	void *result;

	CHECK_EQ(pthread_join(t, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void one(void *(*fn)(void *), int then)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	pthread_barrier_wait(&held);
	usleep(2000);
	CHECK_EQ(pthread_cancel(t), 0);
	cancelled(t);
	CHECK_EQ(pthread_mutex_lock(&m), then);
	if (then == EOWNERDEAD)
		CHECK_EQ(pthread_mutex_consistent(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void one_that_asks(void)
{
	pthread_t t;

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_create(&t, NULL, asks, NULL), 0);
	pthread_barrier_wait(&held);
	usleep(2000);
	CHECK_EQ(pthread_cancel(t), 0);
	usleep(2000);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	cancelled(t);
}

int main(void)
{
	static const int protocols[] = { PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT };

	pthread_barrier_init(&held, NULL, 2);
	for (int i = 0; i < 2; i++) {
		make(protocols[i]);
		for (int k = 0; k < 5; k++) {
			cleaned = 0;
			one(keeps, EOWNERDEAD);
			one(gives_back, 0);
			one(waits, 0);
			one_that_asks();
			CHECK_EQ(cleaned, 3);
		}
		CHECK_EQ(pthread_mutex_destroy(&m), 0);
	}
	return 0;
}
