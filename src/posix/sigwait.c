/* posix/sigwait.c - sigwait, sigwaitinfo, sigtimedwait, sigsuspend, pause. A lightweight thread that waits for signals
 * must not block its virtual processor: programs keep a thread for that all their life. It asks the kernel without
 * waiting and sleeps in between, first 100 us, doubling up to 10 ms. Signals sent to the thread itself are
 * looked at first. Callers: programs. They may switch and are cancellation points. */
#include "posix/posix.h"

#include <string.h>
#include <sys/syscall.h>

#include "os/sys.h"

enum { MASK_BYTES = 8, PAUSE_MIN_NS = 100000, PAUSE_MAX_NS = 10000000 };

/* The signal, or -EAGAIN. */
static int look(const sigset_t *set, siginfo_t *info)
{
	static const struct timespec none;
	int sig = kbi_signal_take(set, info);

	return sig ? sig : (int)kbi_sys(SYS_rt_sigtimedwait, set, info, &none, MASK_BYTES);
}

/* The signal or a negative errno; deadline as kbi_timer_sleep's. */
static int wait_for(const sigset_t *set, siginfo_t *info, uint64_t deadline)
{
	struct kbi_task *self = kbi_self();

	for (uint64_t pause = PAUSE_MIN_NS;; pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS) {
		uint64_t now;
		int sig;

		kbi_cancel_test();
		sig = look(set, info);
		if (sig != -EAGAIN)
			return sig;
		now = kbi_timer_now();
		if (now >= deadline)
			return -EAGAIN;
		kbi_waitq_sleep(self, kbi_posix_until_cancelled(deadline - now < pause ? deadline : now + pause));
		if (kbi_signal_resumed())
			return -EINTR;
	}
}

static int answer(int sig)
{
	if (sig > 0)
		return sig;
	errno = -sig;
	return -1;
}

KBI_POSIX_API int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			       const struct timespec *restrict timeout)
{
	siginfo_t space;
	uint64_t deadline = KBI_FOREVER;

	if (!kbi_posix_light())
		return kbi_libc()->sigtimedwait(set, info, timeout);
	if (timeout && (!kbi_posix_time_ok(timeout) || timeout->tv_sec < 0))
		return answer(-EINVAL);
	if (timeout && timeout->tv_sec < INT32_MAX)
		deadline = kbi_timer_now() + (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec;
	return answer(wait_for(set, info ? info : &space, deadline));
}

KBI_POSIX_API int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	return sigtimedwait(set, info, NULL);
}

KBI_POSIX_API int sigwait(const sigset_t *restrict set, int *restrict sig)
{
	siginfo_t info;
	int r;

	if (!kbi_posix_light())
		return kbi_libc()->sigwait(set, sig);
	do
		r = wait_for(set, &info, KBI_FOREVER);
	while (r == -EINTR);
	if (r < 0)
		return -r;
	*sig = r;
	return 0;
}

/* ---- until a handler has run -------------------------------------------------------------------------- */

/* All signals but those of faults wait meanwhile, so that none is missed between two looks. */
static uint64_t hold_all(void)
{
	sigset_t set;
	uint64_t mask;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGTRAP);
	sigdelset(&set, SIGABRT);
	memcpy(&mask, &set, sizeof(mask));
	return kbi_signal_mask(mask);
}

static void cancel_with(uint64_t mask)
{
	uint64_t held;

	if (kbi_likely(!kbi_cancel_pending()))
		return;
	held = kbi_signal_mask(mask);
	kbi_cancel_act();
	kbi_signal_mask(held);
}

/* mask: lets through what it waits for; the caller's is `before` and is back at the end. */
static int suspend(uint64_t mask, uint64_t before)
{
	struct kbi_task *self = kbi_self();
	uint64_t pause = PAUSE_MIN_NS;

	for (;;) {
		cancel_with(before);
		if (kbi_signal_waits(mask))
			break;
		kbi_waitq_sleep(self, kbi_posix_until_cancelled(kbi_timer_now() + pause));
		kbi_signal_resumed();
		pause = pause * 2 < PAUSE_MAX_NS ? pause * 2 : PAUSE_MAX_NS;
	}
	kbi_signal_mask(mask);
	kbi_signal_mask(before);
	return answer(-EINTR);
}

KBI_POSIX_API int sigsuspend(const sigset_t *set)
{
	uint64_t mask;

	if (!kbi_posix_light())
		return kbi_libc()->sigsuspend(set);
	memcpy(&mask, set, sizeof(mask));
	return suspend(mask, hold_all());
}

KBI_POSIX_API int pause(void)
{
	uint64_t before;

	if (!kbi_posix_light())
		return kbi_libc()->pause();
	before = hold_all();
	return suspend(before, before);
}
