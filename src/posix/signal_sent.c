/* posix/signal_sent.c - signals on their way through the kernel to a kernel thread on which a thread was when they were
 * sent: another thread may be there when they come, or the same thread have closed its mask. And what a thread sends
 * itself. Callers: this family, also in handlers. Never switches, but in handlers of what a thread sends itself. */
#include "posix/signal_priv.h"

#include <sys/syscall.h>

#include "core/body_thread.h"
#include "core/handoff.h"
#include "os/sys.h"

/* It let the signal through when it was looked at, and does not any more, or is not t's. */
static bool has_closed(const struct kb_thread *t, int on, uint64_t bit)
{
	const struct kbi_vp *vp = kbi_signal_body_of(on);

	return vp ? a_load_rlx(&kbi_signal_vp_mask[vp->id]) & bit : kbi_handoff_tid(t) != on;
}

/* These do not queue: the kernel keeps a single signal of a number for a kernel thread, whichever thread here it is for,
 * and drops the next. So a single signal of a number is on its way to a virtual processor, also of those that a thread
 * sends itself there: its bit in `posted` stays until it has come or was found waiting. A kernel thread that a thread has
 * for its call is that thread's, and the call is to end. */
#define MERGED ((kbi_signal_bit(KBI_LIBC_LAST) << 1) - 1)

static bool is_on_its_way(struct kbi_body *b, int on, uint64_t bit)
{
	/* acquire and release: partner is the change in has_come */
	return b && (a_or_acqrel(&b->posted, bit) & bit & MERGED) && kbi_signal_body_of(on);
}

static void has_come(struct kbi_body *b, uint64_t bit)
{
	if (b)
		a_and_acqrel(&b->posted, ~(bit & MERGED));
}

void kbi_signal_has_come(int sig)
{
	has_come(kbi_body_of_tid(kbi_sys_gettid()), kbi_signal_bit(sig));
}

/* A kernel thread that lets nothing through any more when the signal comes would keep it until a thread there does. It
 * has stored its mask and then looks whether something was sent to it; here it is said before and the mask looked at
 * behind: this or the kernel thread sees the change. Seen here, it is said again, for that may have looked before the
 * signal was there, and the kernel thread is made to look. */
int kbi_signal_send_to(int on, const struct kb_thread *t, const siginfo_t *info, struct kbi_signal_to whom)
{
	siginfo_t packed = *info;
	struct kbi_body *b = kbi_body_of_tid(on);
	uint64_t bit = kbi_signal_bit(info->si_signo);
	long e;

	if (kbi_signal_is_overrun(info, on))
		return 0;
	if (is_on_its_way(b, on, bit)) {
		if (info->si_code == SI_TIMER)
			kbi_signal_has_arrived(&packed); /* it does not go that way */
		return EBUSY;
	}
	kbi_signal_pack(&packed, whom);
	e = kbi_sys_signal_info(on, info->si_signo, &packed);
	if (kbi_unlikely(e))
		has_come(b, bit);
	a_fence_sc(); /* partner: the fence in kbi_signal_look_after */
	if (b && !e && has_closed(t, on, bit)) {
		a_or_acqrel(&b->posted, bit & ~MERGED); /* the bits of MERGED stay until the signals come */
		kbi_signal_knock(on);
	}
	return (int)-e;
}

/* A signal that the thread here takes goes to its list. The postman would send it here again at once, and the
 * interrupted code, a handler perhaps that has the signal blocked, would not get on. A thread that keeps this kernel
 * thread has it from there when all have been looked at. */
static bool keep(const siginfo_t *info, struct kbi_signal_to to)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = self ? kbi_thread_of(self) : NULL;

	if (!t || (to.t && to.t != t))
		return false;
	if (self->vp ? !to.t && !kbi_signal_is_for(t, info->si_signo) : !to.t || !kbi_signal_is_bound(t))
		return false;
	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_signal_put(to.t ? to : kbi_signal_to(t), info, !to.t))
		return false;
	a_store_rlx(&self->permit, 1); /* it may have looked already, and be about to sleep */
	return true;
}

/* The process's own of the same number are not taken, the kernel would give the thread's first; and not signals
 * that nobody has announced: a sender from outside means this kernel thread. */
void kbi_signal_look_after_slow(void)
{
	static const struct timespec none;
	struct kbi_body *b = kbi_body_of_tid(kbi_sys_gettid());
	uint64_t set, left;
	struct kbi_signal_to to;
	siginfo_t info;

	if (!b || !kbi_signal_has_post())
		return;
	set = a_and_acqrel(&b->posted, MERGED);
	if (kbi_posix_me.raises) /* the thread itself waits for that */
		set &= ~(kbi_signal_bit(kbi_posix_me.raises->si_signo) & MERGED);
	while ((left = kbi_signal_own_pending() & set)) {
		left &= -left;
		if (kbi_sys(SYS_rt_sigtimedwait, &left, &info, &none, KBI_MASK_BYTES) <= 0)
			return;
		has_come(b, left);
		if (kbi_signal_unpack(&info, &to) != KBI_SIGNAL_LATE && !keep(&info, to))
			kbi_signal_forward(&info, to);
	}
	if (kbi_signal_bound_self())
		kbi_signal_push(kbi_self_raw());
}

/* ---- to oneself ------------------------------------------------------------------------------------------- */

/* A process that is killed when the signal is about to come may not get it, and goes on in another process: again. */
static long send_here(const siginfo_t *packed)
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

/* The signal that self is about to send itself is to be the only one of its number on its way to b, where self runs: the
 * kernel would drop a second one, and tell neither sender. A signal that another thread has sent comes first; until another
 * thread has sent its signal this waits. A bit that stays is nobody's: the sender was killed, or the kernel has thrown the
 * signal away, as a signal that was ignored for a moment. */
static void take_turn(struct kbi_task *self, struct kbi_body *b, uint64_t bit)
{
	enum { PATIENCE = 100000000 }; /* ns */
	uint64_t since = 0;

	/* acquire and release: partner is the change in has_come; and the same one in is_on_its_way */
	for (unsigned n = 0; kbi_unlikely(a_or_acqrel(&b->posted, bit) & bit); n++) {
		uint64_t now = kbi_sys_now();

		if (since && now - since >= PATIENCE)
			return;
		since = since ? since : now;
		kbi_signal_open_again(self);
		kbi_sys_yield_to_holder(n);
	}
}

/* On a virtual processor inside brackets: another signal that comes meanwhile waits in the list, behind it. The program's
 * handler leaves the brackets. */
int kbi_signal_raise_inside(struct kbi_task *self, const siginfo_t *info)
{
	enum { TRIES = 3 };
	bool handled = kbi_signal_has_handler(info->si_signo), stays = handled && self->vp;
	uint64_t bit = kbi_signal_bit(info->si_signo);
	struct kbi_body *b = stays && (bit & MERGED) ? self->vp->body : NULL;
	siginfo_t packed = *info;
	long r;

	if (b)
		take_turn(self, b, bit);
	/* without an address our relay takes it for the tick or the process's; another code or error is known by `raises` */
	if (info->si_signo == kbi_preempt_signal() || (kbi_signal_is_plain(info) && handled))
		kbi_signal_pack(&packed, kbi_signal_to(kbi_thread_of(self)));
	kbi_posix_me.raises = handled ? info : NULL;
	if (!stays)
		kbi_np_leave(self);
	r = send_here(&packed);
	/* the kernel's mask is more than the word says: a handler was left in the middle. Or what was sent to this kernel
	 * thread from outside had not come yet, and this was dropped: that comes now */
	for (int i = 0; kbi_unlikely(kbi_posix_me.raises && self->vp) && !r && i < TRIES; i++) {
		kbi_signal_open_again(self);
		if (kbi_posix_me.raises && (bit & MERGED))
			r = send_here(&packed);
	}
	if (b && kbi_posix_me.raises) /* it has not come */
		has_come(b, bit);
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
