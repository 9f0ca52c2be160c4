/* pthread_getcpuclockid: a clock that can be read and does not go back, and goes on while its thread
 * computes; of a thread that has ended ESRCH is allowed, not a crash; clock_getres knows it. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static int64_t now(clockid_t clock)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(clock, &t), 0);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static pthread_barrier_t all;

static void *computes(void *arg)
{
	int64_t end = now(CLOCK_MONOTONIC) + 30000000;
	volatile unsigned n = 0;

	while (now(CLOCK_MONOTONIC) < end)
		n++;
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}

int main(void)
{
	clockid_t clock, own;
	struct timespec r;
	pthread_t t;
	int64_t before, after;

	pthread_barrier_init(&all, NULL, 2);
	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	CHECK_EQ(pthread_getcpuclockid(t, &clock), 0);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	CHECK_EQ(clock_getres(clock, &r), 0);
	CHECK(r.tv_sec == 0 && r.tv_nsec > 0);
	before = now(clock);
	pthread_barrier_wait(&all);
	after = now(clock);
	CHECK(after - before > 1000000); /* of 30 ms, on a busy machine */
	CHECK(now(own) <= now(own));
	pthread_barrier_wait(&all);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
