/* Timed locks: the time is kept on both clocks, errors come only when the lock is held. */
#include "test.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *try_it(void *arg)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 30), bad = { 0, -1 };
	uint64_t start = test_now_ns();

	CHECK_EQ(pthread_mutex_timedlock(&m, &t), ETIMEDOUT);
	CHECK(test_now_ns() - start >= 29000000);
	t = test_in_ms(CLOCK_MONOTONIC, 30);
	start = test_now_ns();
	CHECK_EQ(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &t), ETIMEDOUT);
	CHECK(test_now_ns() - start >= 29000000);
	CHECK_EQ(pthread_mutex_timedlock(&m, &bad), EINVAL);
	CHECK_EQ(pthread_mutex_clocklock(&m, 1234, &t), EINVAL);
	return arg;
}

static void *hold(void *arg)
{
	struct timespec t = { 0, 20000000 };

	CHECK_EQ(pthread_mutex_lock(&m), 0);
	*(volatile int *)arg = 1;
	nanosleep(&t, NULL);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return NULL;
}

int main(void)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, -5), bad = { 0, -1 };
	volatile int held = 0;
	pthread_t th;

	CHECK_EQ(pthread_mutex_timedlock(&m, &t), 0); /* free: the past does not matter */
	CHECK_EQ(pthread_create(&th, NULL, try_it, NULL), 0);
	CHECK_EQ(pthread_join(th, NULL), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_timedlock(&m, &bad), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);

	CHECK_EQ(pthread_create(&th, NULL, hold, (void *)&held), 0);
	while (!held)
		sched_yield();
	t = test_in_ms(CLOCK_REALTIME, 5000);
	CHECK_EQ(pthread_mutex_timedlock(&m, &t), 0);
	CHECK_EQ(pthread_join(th, NULL), 0);
	return 0;
}
