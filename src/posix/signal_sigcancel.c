/* posix/signal_sigcancel.c - SIGCANCEL, libc's own signal for cancellation, with a handler of
 * ours: a running thread that gets it looks for its signals, cancellation and errands. If the
 * handler interrupts our library, it does nothing, or the signal comes again later. On a VP without
 * a thread it closes the VP's mask. Otherwise the thread takes the signals that were sent to it; if
 * the thread has been cancelled, libc's handler is called: libc knows whether the thread is in a
 * system call that is a cancellation point, or is asynchronous, and then unwinds it. At most two of
 * these signals are on their way to a kernel thread, one sent and one from a timer: they queue, and
 * a thread that does nothing but handle them would not get out of the library.
 * Callers: the kernel; kbi_signal_kick: this family, posix/cancel, core/supervisor. Runs on the
 * interrupted thread's stack. May switch in errands and in the program's handlers. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "core/process_children.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "os/lock.h"
#include "libc/context.h"
#include "libc/endable.h"
#include "libc/broadcast.h"
#include "os/sys.h"

enum { SIGCANCEL = 32, RETRY_NS = 200000 };
/* bytes from the first instruction of libc's return trampoline to the second, x86-64 */
enum { RETURN = 7 };
enum { SENT = 1, TIMED = 2 }; /* bits of a worker's `sigcancel` */

static struct kbi_kaction libcs; /* libc's action; constant once installed */
/* 0: no, 1: being installed, 2: yes, 3: libc has no handler. acquires: partner is the release in
 * kbi_lock_tell (kbi_signal_listen) */
static a32 installed;

static struct kbi_worker *my_worker(void)
{
	return kbi_worker_of_tid(kbi_sys_gettid());
}

/* Tests whether a program's handler has returned to libc's two instructions, but not yet to the
 * interrupted code. */
static bool is_returning(uintptr_t at)
{
	return (libcs.flags & KBI_KACTION_RESTORER) && at - (uintptr_t)libcs.rest[0] <= RETURN;
}

static uint64_t mask_outside(const void *context)
{
	return kbi_signal_from_set(&((const ucontext_t *)context)->uc_sigmask);
}

/* Tests whether the interrupted code is a handler, in a function of libc's. Either it is a handler
 * of ours, which the kernel calls with all signals blocked except libc's own; or the program's
 * handler is over, and its mask counts until it has returned. */
static bool is_in_handler(struct kbi_task *self, const void *context)
{
	uint64_t takes =
		a_load_rlx(&kbi_thread_of(self)->signals.pending) & ~a_load_rlx(kbi_signal_mask(self));

	return kbi_unlikely(takes & mask_outside(context) & ~kbi_signal_never());
}

static bool is_outside(struct kbi_task *self, const void *context)
{
	uintptr_t at = kbi_context_at(context);

	return a_load_rlx(&self->np) == 0 && !kbi_context_is_ours(at) && !is_returning(at) &&
		!is_in_handler(self, context);
}

/* Tests whether the interrupted code may be left: it is the program's or libc's, on its own thread.
 * b: my_worker(). */
static bool may_leave(struct kbi_task *self, const struct kbi_worker *b, const void *context)
{
	if (self && kbi_handoff_is_away(kbi_thread_of(self)))
		return is_outside(self, context) ||
			(a_load_rlx(&self->np) == 0 && kbi_endable_is_at(kbi_context_at(context)));
	if (!self || !self->vp)
		return !kbi_vp_n || kbi_posix_forked || (!b && !kbi_signal_is_dispatcher(kbi_sys_gettid()));
	return kbi_state_kind(a_load_rlx(&self->state)) == KBI_TASK_RUNNING &&
		is_outside(self, context);
}

/* Tests and notes that a signal is on its way to b. The caller has stored what the signal is
 * for. */
static bool mark_sigcancel_coming(struct kbi_worker *b, uint32_t how)
{
	/* acquire and release: partner is clear_sigcancel_coming. Either its caller looks after
	 * this, or this sends another */
	return b && (a_or_acqrel(&b->sigcancel, how) & how);
}

static void clear_sigcancel_coming(struct kbi_worker *b, uint32_t how)
{
	if (b)
		a_and_acqrel(&b->sigcancel, ~how);
}

/* Sends the signal again after RETRY_NS: the thread leaves our library soon, perhaps without a
 * suspension. */
static void resend_sigcancel_later(struct kbi_worker *b)
{
	struct itimerspec soon = { .it_value = { 0, RETRY_NS } };
	struct sigevent e;
	int id = 0;

	if (mark_sigcancel_coming(b, TIMED))
		return;
	memset(&e, 0, sizeof(e));
	e.sigev_notify = SIGEV_THREAD_ID;
	e.sigev_signo = SIGCANCEL;
	e._sigev_un._tid = kbi_sys_gettid();
	if (kbi_sys(SYS_timer_create, CLOCK_MONOTONIC, &e, &id) == 0)
		kbi_sys(SYS_timer_settime, id, 0, &soon, NULL);
	else
		clear_sigcancel_coming(b, TIMED);
}

/* Calls libc's handler, which accepts only a signal that this process has sent to this thread. It
 * may unwind the thread. */
static void call_libcs_handler(void *context)
{
	ucontext_t *uc = context;
	uint64_t mask;
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGCANCEL;
	info.si_code = SI_TKILL;
	info.si_pid = getpid();
	info.si_uid = getuid();
	/* newer versions of glibc block the signal for the rest of the thread's life; here that would
	 * be the kernel thread's */
	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	libcs.handler(SIGCANCEL, &info, context);
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

static void set_kernel_mask(uint64_t mask)
{
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KBI_MASK_BYTES);
}

/* Unblocks signals within the handler. Many signals may be queued: each then comes when the signal
 * before it has been handled, and frames do not pile up on a small stack. The thread may sleep from
 * here on, so other threads run on this kernel thread. */
static void unblock_in_handler(const void *context)
{
	set_kernel_mask(mask_outside(context) & ~kbi_signal_bit(SIGCANCEL));
}

void (*kbi_signal_pins)(void);
aptr kbi_signal_errand;

void kbi_signal_run_errands(const struct kbi_signal_errand *errand)
{
	/* acquire: partner is the release in apply_or_leave_set, posix/affinity */
	if (a_load_acq(&kbi_posix_me.pin_due))
		kbi_signal_pins();
	if (errand)
		errand->run();
}

static bool has_errand(void)
{
	/* acquire: as in kbi_signal_pin */
	const struct kbi_signal_errand *errand = a_load_acq(&kbi_signal_errand);

	return a_load_rlx(&kbi_posix_me.pin_due) || (errand && errand->has());
}

static void return_with_mask(struct kbi_task *self, void *context)
{
	if (a_load_rlx(&kbi_signal_watch) && self->vp)
		kbi_signal_returns(self->vp, context, a_load_rlx(kbi_signal_mask(self)));
}

/* Does everything for a lightweight thread outside the library but take its signals. */
static void serve_sigcancel(struct kbi_task *self, void *context)
{
	const struct kbi_worker *b = self->vp ? self->vp->worker : NULL;

	return_with_mask(self, context);
	if (kbi_likely(!has_errand() && !kbi_cancel_pending()))
		return;
	/* libc has called the interrupted function, or asks the thread for the mark afterwards, and
	 * acts on it then */
	if (kbi_cancel_pending() && kbi_endable_end(context))
		return;
	unblock_in_handler(context);
	kbi_signal_pin();
	if (self->vp && self->vp->worker != b) {
		return_with_mask(self, context);
		kbi_signal_returns_on(self, context);
	}
	/* the thread is in a system call that is a cancellation point, before glibc 2.41, or is
	 * asynchronous: does as libc's handler does, which wants to set the mark itself */
	if (kbi_cancel_pending())
		kbi_signal_unwound(self); /* the tick's handler may have been interrupted */
	if (kbi_cancel_async())
		kbi_libc()->pthread_exit(PTHREAD_CANCELED);
	if (kbi_cancel_pending())
		call_libcs_handler(context);
}

static bool is_cancelled(void)
{
	return kbi_cancel_async();
}

/* Tests for a cancellation that must end the interrupted call. A handler of ours may have
 * interrupted a call of libc's that would not look for the mark again when it is over: libc's
 * handler must see the thread in the call. */
static bool is_cancelled_below(void)
{
	return kbi_cancel_pending() && (kbi_cancel_async() || kbi_cancel_goes_by_place());
}

static bool has_cause(struct kbi_task *self)
{
	return is_cancelled_below() || kbi_posix_stop_signal(self) ||
	       kbi_signal_is_to_push(kbi_thread_of(self)) || has_errand();
}

/* Handles the next signal that self lets through, in this frame. A handler called from here would
 * find this handler as the interrupted code, on a stack where the thread never was; but garbage
 * collectors scan the stack from there on, and profilers look at the code. So this frame becomes
 * the frame of that signal, placed where the kernel would have placed it. Further signals come
 * behind it. A signal without a handler is left to the kernel. */
static void take_next_in_frame(struct kbi_task *self, siginfo_t *info, void *context)
{
	struct kb_thread *t = kbi_thread_of(self);
	siginfo_t sent;

	while (kbi_signal_lets_in(self)) {
		kbi_signal_block_all();
		if (!kbi_signal_get(t, ~a_load_rlx(kbi_signal_mask(self)), &sent))
			return;
		if (kbi_likely(kbi_signal_has_handler(sent.si_signo))) {
			if (kbi_signal_lets_in(self))
				kbi_signal_kick_later();
			*info = sent;
			kbi_signal_handle_taken(info, context);
			return;
		}
		unblock_in_handler(context);
		kbi_signal_raise(&sent);
	}
}

/* Takes self's signals. A bound thread's signals wait at its kernel thread, which gets them when
 * this handler has returned. */
static void take_signals(struct kbi_task *self, siginfo_t *info, void *context)
{
	if (kbi_likely(!kbi_signal_is_bound(kbi_thread_of(self)))) {
		take_next_in_frame(self, info, context);
	} else {
		kbi_signal_block_all();
		kbi_signal_push(self);
	}
}

/* Handles SIGCANCEL. settled: the thread may be left where the frame is. Returns true if the thread
 * may take signals there. */
static bool answer_sigcancel(siginfo_t *info, void *context, bool settled)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_worker *b = my_worker();
	struct kbi_vp *vp = kbi_signal_idle_vp(self);
	int saved = errno;
	bool takes = false;

	if (info->si_code == SI_TIMER)
		kbi_sys(SYS_timer_delete, info->si_timerid);
	clear_sigcancel_coming(b, info->si_code == SI_TIMER ? TIMED : SENT);
	kbi_signal_look_after(b);
	if (vp) {
		kbi_signal_returns_idle(vp, context);
	} else if (!settled || !may_leave(self, b, context)) {
		if (self && has_cause(self)) {
			resend_sigcancel_later(b);
			if (kbi_sys_from.processes && kbi_cancel_async())
				kbi_children_look(); /* libc waits for a child there, in system() */
		}
	} else if (self && (self->vp || kbi_handoff_is_away(kbi_thread_of(self)))) {
		serve_sigcancel(self, context);
		takes = a_load_rlx(&kbi_signal_watch);
	} else {
		set_kernel_mask(mask_outside(context) | kbi_signal_bit(SIGCANCEL));
		call_libcs_handler(context);
	}
	errno = saved;
	return takes;
}

/* Continues after the frame has moved from the kernel thread's alternate stack; all signals were
 * blocked there and still are. */
static void on_sigcancel_moved(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	if (answer_sigcancel(info, context, true))
		take_signals(kbi_self_raw(), info, context);
}

static void on_sigcancel(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	if (answer_sigcancel(info, context, kbi_preempt_settle(info, context, on_sigcancel_moved)))
		take_signals(kbi_self_raw(), info, context);
}

static bool set_sigcancel_handler(void)
{
	struct kbi_kaction ours = libcs;

	ours.handler = on_sigcancel;
	ours.flags |= SA_SIGINFO | SA_RESTART;
	ours.flags &= ~(unsigned long)SA_NODEFER;
	if (kbi_preempt_is_apart()) {
		ours.flags |= SA_ONSTACK;
		ours.rest[KBI_KACTION_MASK] = ~kbi_broadcast_bit();
	}
	return kbi_kaction(SIGCANCEL, &ours, NULL) == 0;
}

/* Installs our handler. libc installs its own when the first thread is cancelled, so the caller
 * cancels itself with cancellation disabled. No other thread has a mark yet, as every canceller
 * comes here first. */
static bool install_sigcancel(void)
{
	int old;

	if (!kbi_cancel_at)
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	kbi_libc()->pthread_cancel(pthread_self());
	a_and_acqrel(kbi_cancel_word(pthread_self()),
		~(uint32_t)(KBI_CANCEL_CANCELING | KBI_CANCEL_CANCELED));
	pthread_setcancelstate(old, NULL);
	kbi_kaction(SIGCANCEL, NULL, &libcs);
	if (!kbi_kaction_is_handler(&libcs))
		return false;
	kbi_children_is_over = is_cancelled;
	return set_sigcancel_handler();
}

void kbi_signal_sigcancel_apart(void)
{
	/* acquire: partner is the release in kbi_lock_tell below. An installation under way finds
	 * kbi_preempt_is_apart true */
	if (a_load_acq(&installed) == 2)
		set_sigcancel_handler();
}

void kbi_signal_listen(void)
{
	uint32_t no = 0;

	/* acquire: partner is the release in kbi_lock_tell below */
	if (kbi_likely(a_load_acq(&installed) >= 2) || !kbi_vp_n || kbi_posix_forked)
		return;
	if (a_cas_acq(&installed, &no, 1))
		kbi_lock_tell(&installed, install_sigcancel() ? 2 : 3);
	kbi_lock_await(&installed, 1);
}

void kbi_signal_kick_later(void)
{
	if (a_load_acq(&installed) == 2)
		resend_sigcancel_later(my_worker());
}

int kbi_signal_kick(int tid)
{
	struct kbi_worker *b = kbi_worker_of_tid(tid);

	if (a_load_acq(&installed) != 2 || mark_sigcancel_coming(b, SENT) ||
		kbi_sys_signal(tid, SIGCANCEL) != -EAGAIN)
		return 0;
	clear_sigcancel_coming(b, SENT);
	return EAGAIN;
}
