/* getrusage(RUSAGE_THREAD): the time is the thread's own, as in its CPU clock; the remaining fields
 * are present. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <errno.h>
#include <sys/resource.h>

static int64_t of(const struct timeval *t)
{
	return t->tv_sec * 1000000000ll + t->tv_usec * 1000ll;
}

static int64_t usage(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_THREAD, &r), 0);
	CHECK(r.ru_maxrss > 0);
	return of(&r.ru_utime) + of(&r.ru_stime);
}

static int64_t usage_by_number(void)
{
	struct rusage r;

	CHECK_EQ(syscall(SYS_getrusage, RUSAGE_THREAD, &r), 0);
	return of(&r.ru_utime) + of(&r.ru_stime);
}

static void *works(void *arg)
{
	int64_t first = usage(), last = first, clock;

	CHECK(first < NEAR_NOTHING);
	while (last - first < 50 * MS) {
		int64_t now;

		cpu_compute();
		sched_yield();
		now = usage();
		CHECK(now >= last);
		last = now;
	}
	clock = cpu_own();
	CHECK(clock - last < 40 * MS && last - clock < 40 * MS);
	clock = usage_by_number();
	CHECK(clock >= last && clock - last < 40 * MS);
	return arg;
}

int main(void)
{
	struct rusage r;
	pthread_t t[2];

	cpu_use_alone(300 * MS);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, works, NULL), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
	CHECK_EQ(getrusage(12345, &r), -1);
	CHECK_EQ(errno, EINVAL);
	return 0;
}
