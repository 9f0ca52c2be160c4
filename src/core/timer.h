/* core/timer.h - sleeping with a deadline, above core/wait, which knows no time.
 * Each VP keeps the deadlines of its tasks (core/deadline), polled by its agent; only the VP that owns the waiter does,
 * so a permit and a deadline never race. Callers: sync, io, posix, core/thread. */
#ifndef KBI_TIMER_H
#define KBI_TIMER_H

#include "core/wait.h"

#define KBI_FOREVER UINT64_MAX
/* The kernel's last time: no clock gets there, but what is left until then can be told. */
#define KBI_LATEST ((uint64_t)INT64_MAX)

/* CLOCK_MONOTONIC now, ns. */
uint64_t kbi_timer_now(void);

/* kbi_wait_sleep with a deadline (CLOCK_MONOTONIC ns; KBI_FOREVER: none). 0: woken, perhaps spuriously;
 * ETIMEDOUT: the deadline has come (a permit may be pending all the same). */
KBI_SWITCHES int kbi_timer_sleep(struct kbi_task *self, uint64_t deadline);

/* A struct timespec's fields, nsec valid, as the kernel takes them: at most KBI_LATEST; 0 for a negative time. */
static inline uint64_t kbi_timer_ns(int64_t sec, long nsec)
{
	enum { SECOND = 1000000000 };

	if (sec < 0)
		return 0;
	return sec >= INT64_MAX / SECOND ? KBI_LATEST : (uint64_t)sec * SECOND + (uint64_t)nsec;
}

/* The deadline ns from now, at most KBI_LATEST. */
static inline uint64_t kbi_timer_after(uint64_t ns)
{
	uint64_t now = kbi_timer_now();

	return ns < KBI_LATEST - now ? now + ns : KBI_LATEST;
}

/* Absolute time of a clock (CLOCK_REALTIME or CLOCK_MONOTONIC) as struct timespec fields -> a deadline for
 * kbi_timer_sleep that is at most 1 s ahead for REALTIME, so that clock steps are noticed: after ETIMEDOUT
 * ask kbi_timer_passed. */
uint64_t kbi_timer_deadline(int clock, int64_t sec, long nsec);
bool kbi_timer_passed(int clock, int64_t sec, long nsec);

#endif
