/* core/timer.h - sleeping with a deadline, above core/wait, which knows no time. Each VP keeps
 * the deadlines of its tasks (core/deadline), and its agent polls them. Only the VP that owns
 * the waiter does this, so a permit and a deadline never race.
 * Callers: sync, io, posix, core/thread. No locks; kbi_timer_sleep switches. */
#ifndef KBI_TIMER_H
#define KBI_TIMER_H

#include "core/wait.h"

#define KBI_FOREVER UINT64_MAX
/* The kernel's last time, ns: no clock reaches it, but the time left until then can be computed. */
#define KBI_LATEST ((uint64_t)INT64_MAX)

/* Returns the time of CLOCK_MONOTONIC, ns. */
uint64_t kbi_timer_now(void);

/* Sleeps like kbi_wait_sleep, until `deadline` at most (CLOCK_MONOTONIC ns; KBI_FOREVER: none).
 * Returns 0: woken, perhaps spuriously; ETIMEDOUT: the deadline has come (there may be a permit
 * all the same). */
KBI_SWITCHES int kbi_timer_sleep(struct kbi_task *self, uint64_t deadline);

/* Returns ns for the fields of a valid struct timespec, as the kernel does: at most KBI_LATEST;
 * 0 for a negative time. */
static inline uint64_t kbi_timer_ns(int64_t sec, long nsec)
{
	enum { SECOND = 1000000000 };

	if (sec < 0)
		return 0;
	return sec >= INT64_MAX / SECOND ? KBI_LATEST : (uint64_t)sec * SECOND + (uint64_t)nsec;
}

/* Returns the deadline `ns` from now, at most KBI_LATEST. */
static inline uint64_t kbi_timer_after(uint64_t ns)
{
	uint64_t now = kbi_timer_now();

	return ns < KBI_LATEST - now ? now + ns : KBI_LATEST;
}

/* kbi_timer_deadline converts an absolute time of a clock (CLOCK_REALTIME or CLOCK_MONOTONIC),
 * as struct timespec fields, to a deadline for kbi_timer_sleep. For REALTIME the deadline is at
 * most 1 s ahead, so that clock steps are noticed: after ETIMEDOUT ask kbi_timer_passed, which
 * returns true if the time has come. */
uint64_t kbi_timer_deadline(int clock, int64_t sec, long nsec);
bool kbi_timer_passed(int clock, int64_t sec, long nsec);

#endif
