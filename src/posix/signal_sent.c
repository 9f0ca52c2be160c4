/* posix/signal_sent.c - signals on their way through the kernel to a kernel thread on which a
 * thread was when they were sent. When they come, another thread may be there, or the thread may
 * have closed its mask. And signals that a thread sends to itself.
 * Callers: this family, also in handlers. No locks. Switches only in handlers of signals that a
 * thread sends to itself. */
#include "posix/signal_priv.h"

#include <sys/syscall.h>

#include "core/handoff.h"
#include "core/worker_thread.h"
#include "os/sys.h"

/* Tests whether kernel thread `on` does not let the signal through any more, or is no longer
 * t's. */
static bool has_closed(const struct kb_thread *t, int on, uint64_t bit)
{
	const struct kbi_vp *vp = kbi_signal_worker_of(on);

	return vp ? a_load_rlx(&kbi_signal_vp_mask[vp->id]) & bit : kbi_handoff_tid(t) != on;
}

/* These signals do not queue: the kernel keeps a single signal of a number for a kernel thread,
 * whichever of our threads it is for, and drops the next. So at most one signal of a number is on
 * its way to a VP, including signals that a thread sends itself there: its bit in `posted` stays
 * set until the signal has come or was found pending. A kernel thread that a thread has for its
 * call belongs to that thread, and the call is to end, so no bit is needed there. */
#define MERGED ((kbi_signal_bit(KBI_LIBC_LAST) << 1) - 1)

static bool test_and_set_posted(struct kbi_worker *b, int on, uint64_t bit)
{
	/* acquire and release: partner is the change in clear_posted_bit */
	return b && (a_or_acqrel(&b->posted, bit) & bit & MERGED) && kbi_signal_worker_of(on);
}

static void clear_posted_bit(struct kbi_worker *b, uint64_t bit)
{
	if (b)
		a_and_acqrel(&b->posted, ~(bit & MERGED));
}

void kbi_signal_has_come(int sig)
{
	clear_posted_bit(kbi_worker_of_tid(kbi_sys_gettid()), kbi_signal_bit(sig));
}

/* If the kernel thread no longer lets the signal through when it comes, the signal would wait until
 * a thread there does. The kernel thread stores its mask and then looks whether a signal was sent
 * to it; here `posted` is set before the signal is sent and the mask is read after. So either this
 * or the kernel thread sees the other's change. If the change is seen here, `posted` is set once
 * more, because the kernel thread may have looked before the signal was there, and the kernel
 * thread is made to look. */
int kbi_signal_send_to(int on, const struct kb_thread *t, const siginfo_t *info,
	struct kbi_signal_to whom)
{
	siginfo_t packed = *info;
	struct kbi_worker *b = kbi_worker_of_tid(on);
	uint64_t bit = kbi_signal_bit(info->si_signo);
	long e;

	if (kbi_signal_is_overrun(info, on))
		return 0;
	if (test_and_set_posted(b, on, bit)) {
		if (info->si_code == SI_TIMER)
			kbi_signal_has_arrived(&packed); /* it does not go through the kernel */
		return EBUSY;
	}
	kbi_signal_pack(&packed, whom);
	e = kbi_sys_signal_info(on, info->si_signo, &packed);
	if (kbi_unlikely(e))
		clear_posted_bit(b, bit);
	a_fence_sc(); /* partner: the fence in kbi_signal_look_after */
	if (b && !e && has_closed(t, on, bit)) {
		a_or_acqrel(&b->posted, bit & ~MERGED); /* bits of MERGED stay until the signals come */
		kbi_signal_kick(on);
	}
	return (int)-e;
}

/* Puts a signal that the thread here takes into its list. The dispatcher would send it here again
 * at once, and the interrupted code, perhaps a handler that blocks the signal, would make no
 * progress. A thread that keeps this kernel thread gets the signal from the kernel thread after all
 * pending ones have been looked at. */
static bool keep_signal_here(const siginfo_t *info, struct kbi_signal_to to)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = self ? kbi_thread_of(self) : NULL;

	if (!t || (to.t && to.t != t))
		return false;
	if (self->vp ? !to.t && !kbi_signal_is_for(t, info->si_signo) :
		!to.t || !kbi_signal_is_bound(t))
		return false;
	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_signal_put(to.t ? to : kbi_signal_to(t), info, !to.t))
		return false;
	/* the thread may have looked already, and be about to sleep, or to return from the tick's
	 * handler to its computation */
	a_store_rlx(&self->permit, 1);
	if (self->vp && kbi_signal_lets_in(self))
		kbi_signal_kick(kbi_sys_gettid());
	return true;
}

/* Takes the announced signals that are pending here. Not the process's signals of these numbers:
 * the kernel gives the thread's first. And not signals that were not announced: a sender from
 * outside means this kernel thread. */
void kbi_signal_look_after_slow(void)
{
	static const struct timespec none;
	struct kbi_worker *b = kbi_worker_of_tid(kbi_sys_gettid());
	uint64_t set, left;
	struct kbi_signal_to to;
	siginfo_t info;

	if (!b || !kbi_signal_has_dispatcher())
		return;
	set = a_and_acqrel(&b->posted, MERGED); /* partner: the changes in kbi_signal_send_to */
	if (kbi_posix_me.raises) /* the thread itself waits for this signal */
		set &= ~(kbi_signal_bit(kbi_posix_me.raises->si_signo) & MERGED);
	while ((left = kbi_signal_own_pending() & set)) {
		left &= -left;
		if (kbi_sys(SYS_rt_sigtimedwait, &left, &info, &none, KBI_MASK_BYTES) <= 0)
			return;
		clear_posted_bit(b, left);
		if (kbi_signal_unpack(&info, &to) != KBI_SIGNAL_LATE &&
			!keep_signal_here(&info, to))
			kbi_signal_forward(&info, to);
	}
	if (kbi_signal_bound_self())
		kbi_signal_push(kbi_self_raw());
}

/* ---- to oneself ------------------------------------------------------------------------------ */

/* Sends the signal to the caller's kernel thread; again if the caller has moved to another process:
 * a process that is killed when the signal is about to come may not get it, and the thread goes on
 * in another process. */
static long send_to_own_tid(const siginfo_t *packed)
{
	int tid;
	long r;

	do {
		tid = kbi_sys_gettid();
		kbi_compiler_barrier();
		r = kbi_sys_signal_info(tid, packed->si_signo, packed);
		kbi_compiler_barrier();
	} while (kbi_posix_me.raises && kbi_sys_gettid() != tid);
	return r;
}

/* Waits until the signal that self is about to send itself is the only signal of its number on
 * its way to b, where self runs: the kernel would drop a second one, and tell neither sender. A
 * signal that another thread has sent comes first; if the other thread has only set the bit,
 * this waits until its signal is sent. A bit that stays set is stale: the sender was killed, or
 * the kernel has thrown the signal away because it was ignored for a moment. */
static void await_posted_turn(struct kbi_task *self, struct kbi_worker *b, uint64_t bit)
{
	enum { PATIENCE = 100000000 }; /* ns */
	uint64_t since = 0;

	/* acquire and release: partner is the change in clear_posted_bit, and this operation in
	 * test_and_set_posted */
	for (unsigned n = 0; kbi_unlikely(a_or_acqrel(&b->posted, bit) & bit); n++) {
		uint64_t now = kbi_sys_now();

		if (since && now - since >= PATIENCE)
			return;
		since = since ? since : now;
		kbi_signal_open_again(self);
		kbi_sys_yield_to_holder(n);
	}
}

/* Sends self a signal. On a VP this stays within brackets: another signal that comes meanwhile
 * waits in the list, behind this one. The program's handler leaves the brackets. */
int kbi_signal_raise_inside(struct kbi_task *self, const siginfo_t *info)
{
	enum { TRIES = 3 };
	bool handled = kbi_signal_has_handler(info->si_signo), stays = handled && self->vp;
	uint64_t bit = kbi_signal_bit(info->si_signo);
	struct kbi_worker *b = stays && (bit & MERGED) ? self->vp->worker : NULL;
	siginfo_t packed = *info;
	long r;

	if (b)
		await_posted_turn(self, b, bit);
	/* without an address our relay takes it for the tick or for the process's signal; a signal with
	 * a different code or an errno value is recognised by `raises` */
	if (info->si_signo == kbi_preempt_signal() || (kbi_signal_is_plain(info) && handled))
		kbi_signal_pack(&packed, kbi_signal_to(kbi_thread_of(self)));
	kbi_posix_me.raises = handled ? info : NULL;
	if (!stays)
		kbi_np_leave(self);
	r = send_to_own_tid(&packed);
	/* Repeat if the signal has not come. Either the kernel's mask is larger than kbi_signal_vp_mask
	 * says, because a handler was left in the middle; or a signal sent to this kernel thread from
	 * outside was still pending, so that this one was dropped: the pending one comes now */
	for (int i = 0; kbi_unlikely(kbi_posix_me.raises && self->vp) && !r && i < TRIES; i++) {
		kbi_signal_open_again(self);
		if (kbi_posix_me.raises && (bit & MERGED))
			r = send_to_own_tid(&packed);
	}
	if (b && kbi_posix_me.raises) /* it has not come */
		clear_posted_bit(b, bit);
	kbi_posix_me.raises = NULL;
	if (!stays)
		kbi_np_enter(self);
	return (int)-r;
}

int kbi_signal_raise(const siginfo_t *info)
{
	struct kbi_task *self = kbi_self_raw();
	int e;

	kbi_np_enter(self);
	e = kbi_signal_raise_inside(self, info);
	kbi_np_leave(self);
	return e;
}
