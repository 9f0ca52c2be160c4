/* 500 threads sleep at once by every function there is: none wakes early, all are over in time. */
#include "crowd.h"

#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 500, MS = 50 };

static void *nap(void *arg)
{
	struct timespec t = { 0, MS * 1000000L };
	uint64_t start = test_now_ns();

	switch ((long)arg % 6) {
	case 0:
		CHECK_EQ(nanosleep(&t, NULL), 0);
		break;
	case 1:
		CHECK_EQ(usleep(MS * 1000), 0);
		break;
	case 2:
		CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
		break;
	case 3:
		CHECK_EQ(thrd_sleep(&t, NULL), 0);
		break;
	default:
		clock_gettime((long)arg % 6 == 4 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &t);
		t.tv_nsec += MS * 1000000L;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		CHECK_EQ(clock_nanosleep((long)arg % 6 == 4 ? CLOCK_MONOTONIC : CLOCK_REALTIME, TIMER_ABSTIME, &t,
					 NULL), 0);
	}
	CHECK(test_now_ns() - start >= (MS - 1) * 1000000u);
	t = (struct timespec){ 0, 1000000000 };
	CHECK_EQ(nanosleep(&t, NULL), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(clock_nanosleep(12345, 0, &t, NULL), EINVAL);
	return NULL;
}

int main(void)
{
	uint64_t start = test_now_ns();

	crowd_run(nap, THREADS);
	CHECK(test_now_ns() - start < 20000000000u);
	return 0;
}
