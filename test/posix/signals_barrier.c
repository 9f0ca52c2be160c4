/* A handler that runs during pthread_barrier_wait and pthread_rwlock_timedrdlock does not give up
 * the thread's place: the remaining threads pass the barrier while the handler sleeps, and a lock
 * that is freed meanwhile is the thread's, though its time has passed when the handler returns. If
 * the handler ends the thread instead, the lock is free. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

__attribute__((weak)) unsigned kb_vp_count(void); /* the runtime brings it */

static pthread_barrier_t b;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static volatile int in_handler, release, ready;
static volatile bool in_time, leaves;
static uint64_t deadline;

static void handler(int sig)
{
	(void)sig;
	in_time = test_now_ns() < deadline;
	in_handler = 1;
	while (!release)
		usleep(1000);
	if (leaves)
		pthread_exit(NULL);
}

static void *at_barrier(void *arg)
{
	int r;

	ready = 1;
	r = pthread_barrier_wait(&b);
	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
	return arg;
}

static void *reading(void *arg)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 100);
	int e;

	deadline = test_now_ns() + 95000000;
	ready = 1;
	e = pthread_rwlock_timedrdlock(&l, &t);
	while (!in_handler)
		usleep(1000);
	CHECK(e == 0 || (e == ETIMEDOUT && !in_time));
	if (e == 0)
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	return arg;
}

static void *reading_for_ever(void *arg)
{
	ready = 1;
	CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	return arg;
}

static void *writing_for_ever(void *arg)
{
	ready = 1;
	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	return arg;
}

static pthread_t in_wait(void *(*fn)(void *))
{
	pthread_t t;

	ready = in_handler = release = 0;
	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	while (!ready)
		sched_yield();
	usleep(10000);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	while (!in_handler)
		sched_yield();
	return t;
}

static void a_place_is_kept(void)
{
	pthread_t t = in_wait(at_barrier);

	at_barrier(NULL);
	release = 1;
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	t = in_wait(reading);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	usleep(150000);
	release = 1;
	CHECK_EQ(pthread_join(t, NULL), 0);
}

/* On libc a thread that is unwound there leaves its mark in the lock. */
static void nobody_has_it(void *(*fn)(void *))
{
	pthread_t t;

	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	t = in_wait(fn);
	leaves = true;
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	release = 1;
	CHECK_EQ(pthread_join(t, NULL), 0);
	leaves = false;
	CHECK_EQ(pthread_rwlock_trywrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&b, NULL, 2), 0);
	for (int i = 0; i < 3; i++)
		a_place_is_kept();
	for (int i = 0; kb_vp_count && i < 3; i++) {
		nobody_has_it(reading_for_ever);
		nobody_has_it(writing_for_ever);
	}
	return 0;
}
