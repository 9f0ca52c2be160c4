/* cpu_time.h - for the tests of threads' CPU clocks: reads clocks and uses processor time. */
#ifndef KB_TEST_CPU_TIME_H
#define KB_TEST_CPU_TIME_H

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, NEAR_NOTHING = 150 * MS }; /* ns */

static inline int64_t cpu_of(clockid_t clock)
{
	struct timespec t = { -1, -1 };

	CHECK_EQ(clock_gettime(clock, &t), 0);
	CHECK(t.tv_sec >= 0 && t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static inline int64_t cpu_own(void)
{
	return cpu_of(CLOCK_THREAD_CPUTIME_ID);
}

static inline void cpu_compute(void)
{
	volatile unsigned sink = 0;

	for (unsigned i = 0; i < 2000; i++)
		sink = sink + i;
}

/* Computes on the calling thread alone, until the kernel says that the process has used that
 * much. */
static inline void cpu_use_alone(int64_t ns)
{
	int64_t until = cpu_of(CLOCK_PROCESS_CPUTIME_ID) + ns;

	while (cpu_of(CLOCK_PROCESS_CPUTIME_ID) < until)
		cpu_compute();
}

/* Computes on the calling thread until its own clock says that it has used that much; checks that
 * this clock never goes back, on any VP. */
static inline void cpu_use_and(int64_t ns, bool yields)
{
	int64_t last = cpu_own(), until = last + ns;

	for (unsigned i = 1; last < until; i++) {
		int64_t now;

		cpu_compute();
		if (i % 8 == 0 && yields)
			sched_yield();
		now = cpu_own();
		CHECK(now >= last);
		last = now;
	}
}

static inline void cpu_use(int64_t ns)
{
	cpu_use_and(ns, true);
}

/* Returns an upper limit of the processor time that there has been since then. */
static inline int64_t cpu_had(uint64_t since)
{
	return (int64_t)(test_now_ns() - since) * sysconf(_SC_NPROCESSORS_ONLN);
}

#endif
