/* core/timer.c - sleeping with a deadline. Contract in timer.h. The heap belongs to the VP that
 * the waiter sleeps on: its keeper looks at permit and deadline in turn, so that they cannot
 * race. Runs on the caller's stack; no locks. */
#include "core/timer.h"

#include <errno.h>

#include "core/deadline.h"
#include "core/domain.h"
#include "core/foreign.h"
#include "os/sys.h"

uint64_t kbi_timer_now(void)
{
	return kbi_sys_now();
}

KBI_NOINLINE int kbi_timer_sleep(struct kbi_task *self, uint64_t deadline)
{
	struct kbi_rest rest;
	struct kbi_vp *vp;
	int e;

	if (!self->vp)
		return kbi_foreign_sleep(self, deadline);
	if (deadline == KBI_FOREVER) {
		kbi_wait_sleep(self);
		return 0;
	}
	kbi_np_enter(self);
	vp = self->vp;
	kbi_deadline_arm(vp, kbi_thread_of(self), &rest, deadline);
	kbi_thread_of(self)->reason = KBI_WAKE_PERMIT;
	kbi_wait_sleep(self);
	/* there was a permit: self did not sleep, so it was not claimed and has not moved */
	if (kbi_task_is(self, KBI_TASK_ARMED))
		kbi_domain_disarm(vp, kbi_thread_of(self));
	e = kbi_thread_of(self)->reason == KBI_WAKE_DEADLINE ? ETIMEDOUT : 0;
	kbi_np_leave(self);
	return e;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

enum { SECOND = 1000000000 };

/* Returns the ns until this time of the clock, 0 if it has come. */
static uint64_t left_until(int clock, int64_t sec, long nsec)
{
	struct timespec now;
	int64_t s;

	clock_gettime(clock, &now);
	if (sec < now.tv_sec || (sec == now.tv_sec && nsec <= now.tv_nsec))
		return 0;
	s = sec - now.tv_sec;
	if (s > INT32_MAX)
		s = INT32_MAX;
	return (uint64_t)(s * SECOND + (nsec - now.tv_nsec));
}

uint64_t kbi_timer_deadline(int clock, int64_t sec, long nsec)
{
	uint64_t left = kbi_timer_ns(sec, nsec);

	if (clock == CLOCK_MONOTONIC)
		return left ? left : 1; /* some callers take a deadline of 0 as "try only" */
	left = left_until(clock, sec, nsec);
	/* a clock that can be set is read again at least every second */
	if (left > SECOND)
		left = SECOND;
	return kbi_sys_now() + left;
}

bool kbi_timer_passed(int clock, int64_t sec, long nsec)
{
	return left_until(clock, sec, nsec) == 0;
}
