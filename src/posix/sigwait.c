/* posix/sigwait.c - waiting for signals: sigwait, sigwaitinfo, sigtimedwait, sigsuspend, pause; and
 * sigpending. A lightweight thread that waits for signals does not block its VP: many programs have
 * a thread that does this all its life. The thread stores its wanted set, looks for signals that
 * are there already, its own and the process's, and sleeps; the signal dispatcher brings later
 * signals.
 * Callers: programs, posix/call_number (by number). Runs on the thread's stack. No locks. These
 * functions may switch and are cancellation points, except when called by number. */
#include "posix/signal_priv.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/agent.h"
#include "os/sys.h"

/* Signals that were sent by number to the kernel thread (timers) are only found by a look at this
 * interval. */
enum { LOOK_NS = 100000000 };

/* Returns those real-time signals of the set that the dispatcher takes. They are left to it: a
 * thread that took one from the kernel might get it before an earlier one, which the dispatcher has
 * taken and not delivered yet. */
static uint64_t left_to_post(uint64_t set)
{
	const uint64_t queue = ~(kbi_signal_bit(SIGRTMIN) - 1);

	return set & queue && !kbi_sys_from.processes ? kbi_signal_dispatcher_takes(set & queue) : 0;
}

static bool is_set_pending(uint64_t set)
{
	uint64_t there = 0;

	if (kbi_likely(!set))
		return false;
	kbi_sys(SYS_rt_sigpending, &there, KBI_MASK_BYTES);
	return there & set;
}

/* Takes a signal from the kernel. Of the signals that are left to the dispatcher it takes none,
 * unless they are the kernel thread's own: the dispatcher does not see these. */
static int take_from_kernel(uint64_t set, siginfo_t *info)
{
	static const struct timespec none;
	uint64_t his = left_to_post(set);

	set &= ~his | (is_set_pending(his) ? kbi_signal_own_pending() : 0);
	return set ? (int)kbi_sys(SYS_rt_sigtimedwait, &set, info, &none, KBI_MASK_BYTES) : -EAGAIN;
}

/* Returns a signal that is there, or -EAGAIN. */
static int take_present_signal(struct kbi_task *self, uint64_t set, siginfo_t *info)
{
	enum kbi_signal_address address;
	struct kbi_signal_to to;
	int sig = kbi_signal_get(kbi_thread_of(self), set, info);

	/* a signal that the dispatcher has in hand, or is about to take, came before those that still
	 * wait in the kernel */
	if (!sig && (kbi_signal_dispatcher_is_at_work() || is_set_pending(left_to_post(set)))) {
		kbi_signal_drain_dispatcher();
		sig = kbi_signal_get(kbi_thread_of(self), set, info);
	}
	if (!sig)
		sig = take_from_kernel(set, info);
	if (sig <= 0)
		return sig;
	address = kbi_signal_unpack(info, &to);
	if (address != KBI_SIGNAL_PLAIN)
		kbi_signal_has_come(sig);
	if (address != KBI_SIGNAL_LATE && (!to.t || to.t == kbi_thread_of(self)))
		return sig;
	if (address != KBI_SIGNAL_LATE)
		kbi_signal_send(to, info, false);
	return -EAGAIN;
}

/* Called when the time is over: a signal that had come by then is not missed because the dispatcher
 * holds it. True: look again. */
static bool settle_at_deadline(uint64_t set)
{
	if (kbi_signal_settle(set))
		return true;
	if (!left_to_post(set))
		return false;
	kbi_signal_drain_dispatcher();
	return true;
}

static int stop_sigwait(struct kbi_task *self)
{
	const struct kbi_signals *s = &kbi_thread_of(self)->signals;

	if (a_load_acq(&s->pending) & a_load_rlx(&s->wanted)) /* partner: kbi_signal_put */
		return EAGAIN;
	return kbi_posix_stop_signal(self);
}

static int stop_or_cancel_sigwait(struct kbi_task *self)
{
	return kbi_unlikely(kbi_cancel_pending()) ? ECANCELED : stop_sigwait(self);
}

/* Returns the signal or a negative errno value; deadline as for kbi_timer_sleep. */
static int wait_for_signal(struct kbi_task *self, uint64_t set, siginfo_t *info, uint64_t deadline,
	bool cancels)
{
	bool settled = false;

	for (;;) {
		int sig = take_present_signal(self, set, info);
		uint64_t now;

		if (sig > 0 || (sig != -EAGAIN && sig != -EINTR))
			return sig;
		now = kbi_timer_now();
		if (now >= deadline && !settled && (settled = settle_at_deadline(set)))
			continue;
		if (now >= deadline && !(kbi_signal_at_dispatcher() & set))
			return -EAGAIN;
		if (now >= deadline)
			deadline = now + LOOK_NS; /* it is on its way */
		kbi_waitq_sleep(self,
			(struct kbi_until){ deadline - now < LOOK_NS ? deadline : now + LOOK_NS,
				cancels ? stop_or_cancel_sigwait : stop_sigwait });
		if (kbi_posix_stop_signal(self)) {
			kbi_signal_resumed();
			return -EINTR;
		}
		kbi_signal_resumed();
		if (cancels && kbi_unlikely(kbi_cancel_pending()))
			return -ECANCELED;
	}
}

static int wait_with_wanted_set(uint64_t wanted, siginfo_t *info, uint64_t deadline, bool cancels)
{
	struct kbi_task *self = kbi_self();
	a64 *mine = &kbi_thread_of(self)->signals.wanted;
	int sig;

	if (cancels)
		kbi_cancel_test();
	kbi_signal_need_dispatcher();
	/* a signal that is there already, and that the dispatcher does not take, needs no delivery */
	sig = kbi_signal_dispatcher_takes(wanted) ? -EAGAIN : take_present_signal(self, wanted, info);
	if (sig > 0)
		return sig;
	a_store_rlx(mine, wanted);
	kbi_signal_opened(wanted);
	sig = wait_for_signal(self, wanted, info, deadline, cancels);
	a_store_rlx(mine, 0);
	kbi_signal_give_back(kbi_thread_of(self));
	if (sig == -ECANCELED) {
		kbi_cancel_test();
		sig = -EINTR;
	}
	return sig;
}

static int sigwait_result(int sig)
{
	if (sig >= 0)
		return sig;
	errno = -sig;
	return -1;
}

static int wait_in_time(uint64_t wanted, siginfo_t *info, const struct timespec *timeout,
	bool cancels)
{
	siginfo_t space;

	if (timeout && (!kbi_posix_time_ok(timeout) || timeout->tv_sec < 0))
		return -EINVAL;
	return wait_with_wanted_set(wanted, info ? info : &space, kbi_posix_after(timeout),
		cancels);
}

static int result_or_errno(int r)
{
	return r < 0 ? -errno : r;
}

KBI_POSIX_API int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
			       const struct timespec *restrict timeout)
{
	struct kbi_task *bound = kbi_signal_bound_self();
	int sig;

	if (!kbi_posix_light() && !bound)
		return kbi_libc()->sigtimedwait(set, info, timeout);
	sig = bound ? result_or_errno(kbi_signal_bound_wait(bound, set, info, timeout)) :
		      wait_in_time(kbi_signal_from_set(set), info, timeout, true);
	/* as in libc: a signal from pthread_kill and raise is reported as kill's */
	if (sig > 0 && info)
		kbi_signal_tells_overruns(info);
	if (sig > 0 && info && info->si_code == SI_TKILL)
		info->si_code = SI_USER;
	return sigwait_result(sig);
}

long kbi_posix_sigwait_by_number(uint64_t wanted, siginfo_t *info, const struct timespec *timeout)
{
	return wait_in_time(wanted, info, timeout, false);
}

KBI_POSIX_API int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
	return sigtimedwait(set, info, NULL);
}

KBI_POSIX_API int sigwait(const sigset_t *restrict set, int *restrict sig)
{
	struct kbi_task *bound = kbi_signal_bound_self();
	siginfo_t info;
	int r;

	if (!kbi_posix_light() && !bound)
		return kbi_libc()->sigwait(set, sig);
	do
		r = bound ? result_or_errno(kbi_signal_bound_wait(bound, set, &info, NULL)) :
			wait_with_wanted_set(kbi_signal_from_set(set), &info, KBI_FOREVER, true);
	while (r == -EINTR);
	if (r < 0)
		return -r;
	*sig = r;
	return 0;
}

/* ---- waiting for a handler ------------------------------------------------------------------- */

/* Counts the caller as waiting for a signal from outside: that is no deadlock. */
static void sleep_for_signals(struct kbi_task *self, bool cancels)
{
	a_add_rlx(&kbi_agent_for_signals, 1);
	kbi_waitq_sleep(self,
		cancels ? kbi_posix_until_cancelled(KBI_FOREVER) : kbi_posix_until(KBI_FOREVER));
	a_sub_rlx(&kbi_agent_for_signals, 1);
}

/* Waits until more handlers have run than `before`. The kernel thread lets no signal through
 * meanwhile: signals go to the dispatcher, which wakes the caller, so no signal can come between
 * the look and the sleep. */
static void wait_for_handler(struct kbi_task *self, uint32_t before, bool cancels)
{
	kbi_signal_resumed(); /* takes signals that the kernel has for the caller */
	while (kbi_posix_me.handled == before) {
		kbi_np_enter(self);
		kbi_signal_close(self->vp);
		kbi_np_leave(self);
		if (kbi_posix_me.handled != before)
			break;
		sleep_for_signals(self, cancels);
		kbi_signal_resumed();
		if (cancels)
			kbi_cancel_test();
	}
}

static void restore_suspended_mask(void *mask)
{
	struct kbi_task *self = kbi_self_raw();

	kbi_signal_set_mask(self, *(uint64_t *)mask);
}

static int suspend_with_mask(struct kbi_task *self, uint64_t mask, bool cancels)
{
	uint64_t before = a_load_rlx(kbi_signal_mask(self)),
		never = kbi_signal_bit(SIGKILL) | kbi_signal_bit(SIGSTOP);
	uint32_t handled;

	if (cancels)
		kbi_cancel_test();
	kbi_signal_need_dispatcher();
	pthread_cleanup_push(restore_suspended_mask, &before);
	/* a signal that is let in from here on ends the wait, wherever it comes */
	handled = kbi_posix_me.handled;
	kbi_compiler_barrier();
	a_store_rlx(kbi_signal_mask(self), mask & ~never);
	kbi_signal_opened(~mask);
	kbi_signal_give_back(kbi_thread_of(self));
	wait_for_handler(self, handled, cancels);
	pthread_cleanup_pop(1);
	return -EINTR;
}

KBI_POSIX_API int sigsuspend(const sigset_t *set)
{
	struct kbi_task *self = kbi_posix_light(), *bound = kbi_signal_bound_self();

	if (kbi_unlikely(bound != NULL))
		return kbi_signal_bound_suspend(bound, set);
	return self ? sigwait_result(suspend_with_mask(self, kbi_signal_from_set(set), true)) :
		kbi_libc()->sigsuspend(set);
}

long kbi_posix_sigsuspend_by_number(uint64_t mask)
{
	return suspend_with_mask(kbi_self_raw(), mask, false);
}

KBI_POSIX_ALIAS(__sigsuspend, sigsuspend);

KBI_POSIX_API int pause(void)
{
	struct kbi_task *self = kbi_posix_light();

	return self ?
		sigwait_result(suspend_with_mask(self, a_load_rlx(kbi_signal_mask(self)), true)) :
		kbi_libc()->pause();
}

/* ---- pending signals ------------------------------------------------------------------------- */

KBI_POSIX_API int sigpending(sigset_t *set)
{
	struct kbi_task *self = kbi_posix_light();
	uint64_t there = 0;

	kbi_posix_let_turn_end();
	if (!self)
		return kbi_libc()->sigpending(set);
	kbi_signal_settle(a_load_rlx(kbi_signal_mask(self)));
	kbi_sys(SYS_rt_sigpending, &there, KBI_MASK_BYTES);
	/* acquire: partner is the release in kbi_signal_put */
	there |= a_load_acq(&kbi_thread_of(self)->signals.pending) | kbi_signal_at_dispatcher();
	kbi_signal_to_set(set, there & a_load_rlx(kbi_signal_mask(self)));
	return 0;
}

long kbi_posix_pause_by_number(void)
{
	kbi_signal_need_dispatcher();
	wait_for_handler(kbi_self_raw(), kbi_posix_me.handled, false);
	return -EINTR;
}
