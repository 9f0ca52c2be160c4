/* Timed waits: each clock, by attribute and by clockwait; a signal in time; invalid times. */
#include "test.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c;
static int go;

static void runs_out(clockid_t clock, int by_name)
{
	struct timespec t = test_in_ms(clock, 30);
	uint64_t start = test_now_ns();
	int e;

	pthread_mutex_lock(&m);
	do
		e = by_name ? pthread_cond_clockwait(&c, &m, clock, &t) :
			pthread_cond_timedwait(&c, &m, &t);
	while (e == 0);
	CHECK_EQ(e, ETIMEDOUT);
	CHECK(test_now_ns() - start >= 29000000);
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	pthread_mutex_unlock(&m);
}

static void *poster(void *arg)
{
	struct timespec t = { 0, 5000000 };

	nanosleep(&t, NULL);
	pthread_mutex_lock(&m);
	go = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	return arg;
}

static void in_time(clockid_t clock)
{
	struct timespec t = test_in_ms(clock, 20000);
	pthread_t th;

	go = 0;
	CHECK_EQ(pthread_create(&th, NULL, poster, NULL), 0);
	pthread_mutex_lock(&m);
	while (!go)
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &t), 0);
	pthread_mutex_unlock(&m);
	CHECK_EQ(pthread_join(th, NULL), 0);
}

int main(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct timespec bad = { 1, 1000000000 };

	for (int i = 0; i < 4; i++) {
		pthread_condattr_t a;

		pthread_condattr_init(&a);
		CHECK_EQ(pthread_condattr_setclock(&a, clocks[i % 2]), 0);
		CHECK_EQ(pthread_cond_init(&c, &a), 0);
		runs_out(clocks[i % 2], 0);
		runs_out(CLOCK_REALTIME, 1);
		runs_out(CLOCK_MONOTONIC, 1);
		in_time(clocks[i % 2]);
		pthread_mutex_lock(&m);
		CHECK_EQ(pthread_cond_timedwait(&c, &m, &bad), EINVAL);
		CHECK_EQ(pthread_cond_clockwait(&c, &m, 77, &bad), EINVAL);
		pthread_mutex_unlock(&m);
		CHECK_EQ(pthread_cond_destroy(&c), 0);
	}
	return 0;
}
