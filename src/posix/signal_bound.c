/* posix/signal_bound.c - signals of a bound thread, which keeps a kernel thread of its own
 * (posix/bind). The kernel thread has the thread's mask and gets its signals, as any kernel thread.
 * So sigsuspend, ppoll, a signalfd and signals of the kernel itself (timers with SIGEV_THREAD_ID,
 * F_SETOWN_EX) work without further measures. A sender sends to the kernel thread, even a blocked
 * signal (kbi_signal_send); the thread itself pushes there what came into its list before. The
 * descriptor's copy of the mask serves the search for a thread that takes a signal to the program.
 * A sender that has not seen KBI_SIGNAL_BOUND puts the signal into the list, and then looks where
 * the thread is and makes it look. The thread stores that bit and then looks into its list. So the
 * sender sees the bit, or the thread sees the signal.
 * Callers: this family, posix/bind, sigwait. Runs on the thread's stack. The pool's lock. Never
 * switches, but runs handlers. */
#include "posix/signal_priv.h"

#include <errno.h>

#include "os/sys.h"

/* Signals that the kernel never blocks there are taken from our copy. */
void kbi_signal_note_kernel_mask(struct kbi_task *self, uint64_t mask)
{
	uint64_t never = kbi_signal_never() | kbi_broadcast_bit();

	a_store_rlx(kbi_signal_mask(self),
		(mask & ~never) | (a_load_rlx(kbi_signal_mask(self)) & never));
}

void kbi_signal_push(struct kbi_task *self)
{
	struct kbi_signal_to me = kbi_signal_to(kbi_thread_of(self));
	siginfo_t info;

	/* acquire: partner is the release in kbi_signal_put */
	while (a_load_acq(&me.t->signals.pending) && kbi_signal_get(me.t, ~(uint64_t)0, &info))
		kbi_signal_send_here(&info, me);
}

void kbi_signal_bound_begins(struct kbi_task *self)
{
	struct kb_thread *t = kbi_thread_of(self);

	if (kbi_signal_is_bound(t))
		return;
	a_or_acqrel(&t->signals.wanted, KBI_SIGNAL_BOUND);
	/* partner: the lock of the list, and the look at the thread's state behind it, in
	 * put_signal_in_list */
	a_fence_sc();
	kbi_signal_kernel_mask(a_load_rlx(kbi_signal_mask(self)));
	kbi_signal_push(self);
}

/* Takes the signals that wait at the kernel thread: keeps them for self, or drops them. A real-time
 * signal may wait several times. */
static void take_waiting(struct kbi_task *self, bool keeps)
{
	struct kbi_signal_to to, me = kbi_signal_to(kbi_thread_of(self));
	uint64_t all = ~(kbi_signal_never() | kbi_broadcast_bit()), left = all;
	siginfo_t info;

	while (kbi_signal_take_own(&left, &info)) {
		if (kbi_signal_unpack(&info, &to) == KBI_SIGNAL_PACKED && !to.t)
			kbi_signal_forward(&info, to);
		else if (keeps)
			kbi_signal_put(me, &info, false);
		left = all;
	}
}

/* Ends the bound state. A later signal that is sent to the kernel thread finds another thread there
 * (KBI_SIGNAL_LATE). */
static void end_bound(struct kbi_task *self, bool keeps)
{
	a64 *mask = kbi_signal_mask(self);
	uint64_t there = 0;

	a_and_acqrel(&kbi_thread_of(self)->signals.wanted, ~KBI_SIGNAL_BOUND);
	kbi_signal_kernel_mask(~(uint64_t)0);
	kbi_sys(SYS_rt_sigpending, &there, KBI_MASK_BYTES);
	if (there)
		take_waiting(self, keeps);
	kbi_signal_kernel_mask(a_load_rlx(mask));
}

void kbi_signal_bound_undone(struct kbi_task *self)
{
	if (!kbi_signal_is_bound(kbi_thread_of(self)))
		return;
	a_store_rlx(&kbi_signal_watch, 1);
	end_bound(self, true);
}

void kbi_signal_bound_ends(struct kbi_task *self)
{
	end_bound(self, false);
}

/* ---- calls that wait for signals ------------------------------------------------------------- */

/* Notes that self waits for the set. Signals for the program may come, too: where VPs are
 * processes, from the signal dispatcher. */
static void note_wanted_signals(struct kbi_task *self, uint64_t set)
{
	a_store_rlx(&kbi_thread_of(self)->signals.wanted, set | KBI_SIGNAL_BOUND);
	if (set)
		kbi_signal_opened(set);
	else
		kbi_signal_give_back(kbi_thread_of(self));
}

static void clear_wanted_signals(void *self)
{
	int saved = errno;

	note_wanted_signals(self, 0);
	errno = saved;
}

/* Returns the next signal of the set; -1 and errno. Also a signal that was given to self when its
 * time was almost over. */
static int wait_once(struct kbi_task *self, const sigset_t *set, siginfo_t *info,
	const struct timespec *timeout)
{
	static const struct timespec none;
	int sig;

	pthread_cleanup_push(clear_wanted_signals, self);
	note_wanted_signals(self, kbi_signal_from_set(set));
	sig = kbi_libc()->sigtimedwait(set, info, timeout);
	pthread_cleanup_pop(1);
	return sig < 0 && errno == EAGAIN ? kbi_libc()->sigtimedwait(set, info, &none) : sig;
}

static bool must_wait_again(int sig, siginfo_t *info, uint32_t handled)
{
	struct kbi_signal_to to;

	if (sig < 0)
		return errno == EINTR && kbi_posix_me.handled == handled;
	return kbi_signal_unpack(info, &to) == KBI_SIGNAL_LATE;
}

int kbi_signal_bound_wait(struct kbi_task *self, const sigset_t *set, siginfo_t *info,
	const struct timespec *timeout)
{
	bool has_time = timeout && kbi_posix_time_ok(timeout) && timeout->tv_sec >= 0;
	uint64_t deadline = has_time ? kbi_posix_after(timeout) : KBI_FOREVER, now;
	uint32_t handled = kbi_posix_me.handled;
	struct timespec left;
	siginfo_t space;
	int sig;

	info = info ? info : &space;
	kbi_signal_push(self);
	while (must_wait_again(sig = wait_once(self, set, info, timeout), info, handled)) {
		if (!has_time)
			continue;
		now = kbi_timer_now();
		left = kbi_sys_timespec(deadline > now ? deadline - now : 0);
		timeout = &left;
	}
	return sig;
}

static void restore_mask(void *mask)
{
	struct kbi_task *self = kbi_self_raw();

	if (self)
		a_store_rlx(kbi_signal_mask(self), *(uint64_t *)mask);
}

/* Waits in the kernel with the mask `set`; senders see that mask meanwhile. */
int kbi_signal_bound_suspend(struct kbi_task *self, const sigset_t *set)
{
	uint64_t before = a_load_rlx(kbi_signal_mask(self)),
		mask = kbi_signal_from_set(set) & ~kbi_signal_kept;
	uint32_t handled = kbi_posix_me.handled;
	int r;

	kbi_signal_push(self);
	pthread_cleanup_push(restore_mask, &before);
	do {
		a_store_rlx(kbi_signal_mask(self), mask);
		kbi_signal_opened(~mask);
		r = kbi_libc()->sigsuspend(set);
	} while (kbi_posix_me.handled == handled);
	pthread_cleanup_pop(1);
	return r;
}
