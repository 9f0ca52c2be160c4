/* pthread_getcpuclockid: the clock can be read, does not go back, and goes on while its thread
 * computes. For a thread that has ended, ESRCH is allowed, a crash is not. clock_getres accepts the
 * clock. */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static int64_t now(clockid_t clock)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(clock, &t), 0);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int enough;

static void *computes(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		;
	return arg;
}

int main(void)
{
	clockid_t clock, own;
	struct timespec r;
	pthread_t t;
	int64_t before;

	CHECK_EQ(pthread_create(&t, NULL, computes, NULL), 0);
	CHECK_EQ(pthread_getcpuclockid(t, &clock), 0);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	CHECK_EQ(clock_getres(clock, &r), 0);
	CHECK(r.tv_sec == 0 && r.tv_nsec > 0);
	before = now(clock);
	while (now(clock) - before < 1000000) /* a clock that stands still does not end this loop */
		usleep(1000);
	CHECK(now(own) <= now(own));
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
