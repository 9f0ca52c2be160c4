/* posix/signal.c - masks of lightweight threads, and how a thread finds the signals that were sent
 * to it. Each thread's mask is remembered with the thread. When a thread resumes on a kernel thread
 * that has another mask, the kernel thread gets the thread's mask. An idle VP lets no signal
 * through: its signals go to the signal dispatcher (signal_dispatcher). Faults and the
 * runtime's tick are never blocked.
 * Callers: this room; the core, through pointers set in kbi_signal_started; `sync` asks
 * kbi_posix_stop_signal. Runs on the thread's stack, `on_tick_return` also on a handler's. No
 * locks. Functions that run a program's handler may switch. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "core/quantum.h"
#include "core/agent.h"
#include "core/worker_thread.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/worker_pool.h"
#include "core/wait.h"
#include "core/supervisor.h"
#include "libc/asked.h"
#include "libc/context.h"
#include "os/sys.h"

#define BIT(sig) ((uint64_t)1 << ((sig)-1))

const uint64_t kbi_signal_closed =
	~(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGABRT));

a32 kbi_signal_watch;
a64 kbi_signal_vp_mask[KBI_MAX_VPS];
/* set by a handler that has begun: the kernel's mask is larger than kbi_signal_vp_mask says */
static a32 grown[KBI_MAX_VPS];
static uint64_t base_mask; /* main's mask when the runtime started; constant after start */
static stack_t alternate;  /* main's alternate stack at that time */

uint64_t kbi_signal_from_set(const sigset_t *set)
{
	uint64_t m;

	memcpy(&m, set, sizeof(m));
	return m;
}

void kbi_signal_to_set(sigset_t *set, uint64_t m)
{
	memset(set, 0, sizeof(*set));
	memcpy(set, &m, sizeof(m));
}

struct kbi_vp *kbi_signal_worker_of(int tid)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (kbi_signal_tid(kbi_vps[i]) == tid)
			return kbi_handoff_is_given(kbi_vps[i], tid) ? NULL : kbi_vps[i];
	return NULL;
}

/* ---- masks ----------------------------------------------------------------------------------- */

void kbi_signal_kernel_mask(uint64_t mask)
{
	mask &= ~(kbi_signal_never() | kbi_broadcast_bit());
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KBI_MASK_BYTES);
}

/* Signals that the kernel sends to a thread because of its own call: at once, and to its kernel
 * thread. */
static const uint64_t own_calls = BIT(SIGPIPE) | BIT(SIGXFSZ);
/* for each VP: the thread that blocked a signal of own_calls there, or NULL. Written
 * on the VP's kernel thread */
static aptr withheld[KBI_MAX_VPS];

bool kbi_signal_take_own(uint64_t *left, siginfo_t *info)
{
	static const struct timespec none;

	while (*left && (*left &= kbi_signal_own_pending())) {
		uint64_t one = *left & -*left;

		*left &= ~one;
		if (kbi_sys(SYS_rt_sigtimedwait, &one, info, &none, KBI_MASK_BYTES) > 0)
			return true;
	}
	return false;
}

/* Drops signals of own_calls that the last thread here blocked and that belong to a call that no
 * code of ours saw (libc's stdio): these are not for the next thread, and are lost. Signals that a
 * process has sent to the kernel thread stay. */
static KBI_NOINLINE void drop_others_signals(struct kbi_vp *vp)
{
	uint64_t left = own_calls;
	siginfo_t info;

	a_store_rlx(&withheld[vp->id], NULL);
	while (kbi_signal_take_own(&left, &info))
		if (info.si_code != SI_USER)
			kbi_sys_signal_info(kbi_sys_gettid(), info.si_signo, &info);
}

/* Called when self is about to bring its mask to vp. */
static inline void part_from_others(struct kbi_vp *vp, struct kbi_task *self, uint64_t mask)
{
	struct kbi_task *who = a_load_rlx(&withheld[vp->id]);

	if (kbi_unlikely(who != NULL) && who != self &&
		(a_load_rlx(&kbi_signal_vp_mask[vp->id]) & ~mask & own_calls))
		drop_others_signals(vp);
	if (kbi_unlikely(self && (mask & own_calls)))
		a_store_rlx(&withheld[vp->id], self);
}

/* Sets vp's mask; runs on the VP's own kernel thread. The word is stored first: a handler that
 * comes in between reads the mask that will be valid. */
static void set_vp_mask(struct kbi_vp *vp, struct kbi_task *self, uint64_t mask)
{
	if (a_load_rlx(&kbi_signal_vp_mask[vp->id]) == mask && !a_load_rlx(&grown[vp->id]))
		return;
	part_from_others(vp, self, mask);
	a_store_rlx(&kbi_signal_vp_mask[vp->id], mask);
	a_store_rlx(&grown[vp->id], 0);
	kbi_compiler_barrier();
	kbi_signal_kernel_mask(mask);
	kbi_signal_look_after(vp->worker);
}

void kbi_signal_grows(const struct kbi_vp *vp)
{
	a_store_rlx(&grown[vp->id], 1);
}

void kbi_signal_open_again(struct kbi_task *self)
{
	kbi_signal_grows(self->vp);
	set_vp_mask(self->vp, self, a_load_rlx(kbi_signal_mask(self)));
}

/* Tests whether the kernel thread has self's mask. If self is switched away during the test,
 * `on_tick_return` has set the mask at its new place when self resumes. */
static inline bool has_mask(struct kbi_task *self)
{
	const struct kbi_vp *vp = self->vp;

	return kbi_likely(vp != NULL) &&
	       a_load_rlx(&kbi_signal_vp_mask[vp->id]) == a_load_rlx(kbi_signal_mask(self)) &&
	       !a_load_rlx(&grown[vp->id]);
}

/* Notes that the kernel's mask is larger than the word says, because a handler has just begun. From
 * the tick on another thread may run there; that thread would take the handler's mask for its
 * own. */
void kbi_signal_interrupts(const struct kbi_vp *vp, uint64_t kernels)
{
	uint64_t never = kbi_signal_never() | kbi_broadcast_bit();

	if (kbi_unlikely((kernels ^ a_load_rlx(&kbi_signal_vp_mask[vp->id])) & ~never))
		kbi_signal_grows(vp);
}

/* Gives the caller's kernel thread the caller's mask. */
static void bring_mask(struct kbi_task *self)
{
	struct kbi_vp *vp;

	if (kbi_likely(has_mask(self)))
		return;
	kbi_np_enter(self);
	vp = self->vp;
	kbi_posix_me.lets_in = true;
	kbi_compiler_barrier();
	if (kbi_likely(vp != NULL)) /* a handler may have forked before, and this is the child */
		set_vp_mask(vp, self, a_load_rlx(kbi_signal_mask(self)));
	kbi_compiler_barrier();
	kbi_posix_me.lets_in = false;
	kbi_np_leave(self);
}

/* Tests whether self's mask is on its way to the kernel, or there. */
bool kbi_signal_is_let_in(struct kbi_task *self)
{
	return kbi_posix_me.lets_in && self->vp &&
	       a_load_rlx(&kbi_signal_vp_mask[self->vp->id]) == a_load_rlx(kbi_signal_mask(self));
}

void kbi_signal_close(struct kbi_vp *vp)
{
	set_vp_mask(vp, NULL, kbi_signal_closed);
}

struct kbi_vp *kbi_signal_idle_vp(const struct kbi_task *self)
{
	return !self && kbi_vp_n && !kbi_posix_forked ? kbi_signal_worker_of(kbi_sys_gettid()) : NULL;
}

void kbi_signal_returns_idle(struct kbi_vp *vp, void *context)
{
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_signal_returns(vp, context, kbi_signal_closed);
}

/* Called when vp has got another kernel thread, which blocks all signals. */
static void on_vp_adopted(struct kbi_vp *vp)
{
	uint64_t mask = a_load_rlx(&kbi_signal_watch) ? kbi_signal_closed : base_mask;

	a_store_rlx(&kbi_signal_vp_mask[vp->id], mask);
	kbi_compiler_barrier();
	kbi_signal_kernel_mask(mask);
}

/* Called when self is about to block in the kernel without its VP. Signals go directly to self's
 * kernel thread from here on. That kernel thread may have another thread's mask, because self has
 * not brought its own mask if it resumed in the core or in libc. */
static void on_thread_departure(struct kbi_task *self, void *context)
{
	if (!a_load_rlx(&kbi_signal_watch))
		return;
	if (context)
		kbi_signal_returns(self->vp, context, a_load_rlx(kbi_signal_mask(self)));
	else
		bring_mask(self);
}

/* Called when vp gets another kernel thread, on which self runs. The kernel has self's mask there,
 * and perhaps a handler's in addition. */
static void on_vp_takeover(struct kbi_vp *vp, struct kbi_task *self)
{
	uint64_t mask = a_load_rlx(kbi_signal_mask(self));

	a_store_rlx(&kbi_signal_vp_mask[vp->id], mask);
	a_store_rlx(&withheld[vp->id], mask & own_calls ? self : NULL);
	kbi_signal_grows(vp);
}

/* Moves signals of `set` that are pending for the caller's kernel thread, and that self blocks, to
 * self's list. */
static void claim_blocked_signals(struct kbi_task *self, uint64_t set)
{
	uint64_t left = set & a_load_rlx(kbi_signal_mask(self));
	siginfo_t info;

	while (kbi_signal_take_own(&left, &info))
		kbi_signal_put(kbi_signal_to(kbi_thread_of(self)), &info, false);
}

void kbi_signal_claim(int sig)
{
	struct kbi_task *self = kbi_posix_light();

	if (!self || !(a_load_rlx(kbi_signal_mask(self)) & BIT(sig)))
		return;
	kbi_np_enter(self);
	claim_blocked_signals(self, BIT(sig));
	kbi_np_leave(self);
}

/* Called when self leaves its kernel thread, which then waits, without a thread, until it becomes a
 * VP again. */
static void on_kernel_thread_left(struct kbi_task *self)
{
	claim_blocked_signals(self, own_calls);
	kbi_signal_kernel_mask(kbi_signal_closed);
	kbi_signal_look_after(&kbi_workers[kbi_thread_of(self)->worker]);
}

/* Called in the tick's handler when self, which the tick had switched away, resumes. Signals sent
 * in the meantime come when the tick's handler has returned, so that they interrupt the code that
 * the tick interrupted. All signals are blocked until then, and self's mask is in the context that
 * is returned to. If self sent itself signals now, they would wait at the kernel thread; self might
 * be elsewhere, with its next signals, when they come. */
static void on_tick_return(struct kbi_task *self, void *context)
{
	bool watch = a_load_rlx(&kbi_signal_watch);

	if (watch && kbi_unlikely(kbi_signal_lets_in(self)))
		kbi_signal_kick(kbi_sys_gettid());
	if (watch && kbi_unlikely(kbi_cancel_async())) {
		kbi_signal_unwound(self);
		kbi_cancel_act();
	}
	if (!self->vp)
		return;
	if (watch)
		part_from_others(self->vp, self, a_load_rlx(kbi_signal_mask(self)));
	kbi_signal_returns(self->vp, context, a_load_rlx(kbi_signal_mask(self)));
	kbi_signal_returns_on(self, context);
	kbi_signal_pin();
}

/* Closes vp before it sleeps, if there is a signal dispatcher that takes signals. */
static void close_sleeper(struct kbi_vp *vp)
{
	if (a_load_rlx(&kbi_signal_watch))
		kbi_signal_close(vp);
}

void kbi_signal_unwound(struct kbi_task *self)
{
	kbi_np_enter(self);
	if (self->vp) {
		a_store_rlx(&kbi_signal_vp_mask[self->vp->id], a_load_rlx(kbi_signal_mask(self)));
		kbi_compiler_barrier();
	}
	if (self->vp || kbi_handoff_is_away(kbi_thread_of(self)))
		kbi_signal_kernel_mask(a_load_rlx(kbi_signal_mask(self)));
	kbi_np_leave(self);
}

void kbi_signal_returns(struct kbi_vp *vp, void *context, uint64_t mask)
{
	ucontext_t *uc = context;
	uint64_t sigcancel = kbi_signal_from_set(&uc->uc_sigmask) & BIT(KBI_LIBC_FIRST);

	a_store_rlx(&kbi_signal_vp_mask[vp->id], mask);
	a_store_rlx(&grown[vp->id], 0);
	if (mask)
		kbi_signal_look_after(vp->worker);
	mask &= ~(kbi_signal_never() | kbi_broadcast_bit());
	/* SIGCANCEL's handler is returned to; further signals of that number must not pile up */
	mask |= sigcancel;
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

/* Checks that libc keeps the real-time signals that we expect; SIGRTMIN tells where the program's
 * signals begin. */
static void check_libc_signals(void)
{
	const char *what = "signals of libc's";

	if (SIGRTMIN == KBI_LIBC_LAST + 1)
		kbi_asked_found(what, "%d and %d", KBI_LIBC_FIRST, KBI_LIBC_LAST);
	else
		kbi_asked_missed(what, "%d to %d: those above %d are taken for the program's",
				 KBI_LIBC_FIRST, SIGRTMIN - 1, KBI_LIBC_LAST);
}

void kbi_signal_start(void)
{
	if (kbi_vp_n)
		return;
	check_libc_signals();
	kbi_sys(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &base_mask, KBI_MASK_BYTES);
	for (unsigned i = 0; i < KBI_MAX_VPS; i++)
		a_store_rlx(&kbi_signal_vp_mask[i], base_mask);
	/* before that, a handler would find a kernel thread that runs no thread */
	kbi_worker_adopted = on_vp_adopted;
	kbi_preempt_is_shared = true;
	kbi_signal_adopt_handlers();
	kbi_sys(SYS_sigaltstack, NULL, &alternate);
	kbi_worker_open = true;
	kbi_signal_take_early();
	kbi_signal_kernel_mask(base_mask); /* the tick comes to this kernel thread, too */
}

void kbi_signal_not_started(void)
{
	kbi_signal_give_early(NULL);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &base_mask, NULL, KBI_MASK_BYTES);
}

void kbi_signal_started(void)
{
	struct kbi_task *main = kbi_posix_light();

	if (main) {
		a_store_rlx(kbi_signal_mask(main), base_mask);
		a_store_rlx(&kbi_thread_of(main)->number, (uint32_t)getpid());
		kbi_thread_of(main)->posix = &kbi_posix_me;
		kbi_signal_main_is(kbi_thread_of(main));
		if (!(alternate.ss_flags & SS_DISABLE))
			sigaltstack(&alternate, NULL);
	}
	kbi_signal_give_early(main ? kbi_thread_of(main) : NULL);
	kbi_signal_opened(~base_mask);
	kbi_agent_sleeps = close_sleeper;
	kbi_quantum_room = kbi_signal_room;
	kbi_handoff_leaves = on_kernel_thread_left;
	kbi_handoff_takes = on_vp_takeover;
	kbi_handoff_departs = on_thread_departure;
	kbi_preempt_returns = on_tick_return;
	kbi_supervisor_kick = kbi_signal_kick;
	if (base_mask || kbi_signal_any_handler())
		kbi_signal_need_dispatcher();
}

void kbi_signal_inherit(struct kb_thread *child, const sigset_t *given)
{
	struct kbi_task *self = kbi_posix_light();
	uint64_t mask = given ? kbi_signal_from_set(given) :
		self ? a_load_rlx(kbi_signal_mask(self)) : base_mask;

	a_store_rlx(&child->signals.mask, mask);
	a_store_rlx(&child->signals.pending, 0);
	a_store_rlx(&child->signals.wanted, 0);
	if (kbi_unlikely(given != NULL)) {
		kbi_signal_need_dispatcher();
		kbi_signal_opened(~mask);
	}
}

void kbi_signal_set_mask(struct kbi_task *self, uint64_t mask)
{
	uint64_t before = a_load_rlx(kbi_signal_mask(self));

	kbi_signal_blocks_for_good(kbi_thread_of(self));
	if (mask & ~before)
		kbi_signal_leaves(self, mask & ~before);
	kbi_signal_take_queued(self, before & ~mask);
	a_store_rlx(kbi_signal_mask(self), mask);
	if (before & ~mask)
		kbi_signal_opened(before & ~mask);
	if (mask & ~before) {
		kbi_signal_left(self);
		kbi_signal_give_back(kbi_thread_of(self));
	}
	kbi_signal_need_dispatcher();
	kbi_signal_resumed();
}

void kbi_signal_take_mask(struct kbi_task *self, uint64_t mask)
{
	mask &= ~kbi_signal_kept;
	if (mask != a_load_rlx(kbi_signal_mask(self)))
		kbi_signal_set_mask(self, mask);
}

void kbi_signal_bring_mask(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (self)
		bring_mask(self);
}

/* ---- finding the signals that were sent ------------------------------------------------------ */

/* Returns EINTR, once, if a handler ended a kernel thread's futex wait. */
static int ended_by_handler(struct kbi_task *self)
{
	if (kbi_thread_of(self)->reason != KBI_WAKE_HANDLER)
		return 0;
	kbi_thread_of(self)->reason = KBI_WAKE_PERMIT;
	return EINTR;
}

/* Returns EINTR if a signal is there that self lets through. An asynchronous cancellation acts
 * wherever the thread waits, after the thread has left the queue: EINTR, too. */
int kbi_posix_stop_signal(struct kbi_task *self)
{
	const struct kbi_signals *s = &kbi_thread_of(self)->signals;
	uint64_t pending = a_load_rlx(&s->pending);

	if (kbi_unlikely(pending) && (pending & ~a_load_rlx(&s->mask)))
		return EINTR;
	if (kbi_unlikely(!self->vp))
		return kbi_cancel_async() ? EINTR : ended_by_handler(self);
	return kbi_unlikely(kbi_cancel_async()) ? EINTR : 0;
}

static inline __attribute__((always_inline)) bool take_resumed_signals(void);

/* Runs handlers while self keeps its place in the queue; then EAGAIN, because the wake-up may have
 * come while the handler slept. An asynchronous cancellation leaves the queue first. */
int kbi_posix_stop_in_place(struct kbi_task *self)
{
	int e = kbi_posix_stop_signal(self);

	if (kbi_likely(!e) || !self->vp || kbi_cancel_async())
		return e;
	take_resumed_signals();
	return EAGAIN;
}

/* Takes the next signal that self lets through and handles it; false: there is none. */
static bool take_next_signal(struct kbi_task *self, bool *ends_call)
{
	siginfo_t info;
	int sig;

	kbi_np_enter(self);
	sig = kbi_signal_get(kbi_thread_of(self), ~a_load_rlx(kbi_signal_mask(self)), &info);
	if (sig) {
		*ends_call |= !kbi_kaction_restarts(sig);
		kbi_signal_raise_inside(self, &info);
	}
	kbi_np_leave(self);
	return sig;
}

/* Handles what was sent to self, which is in a blocking call on a kernel thread of its own. The
 * kernel thread gets the signals as any kernel thread does. */
static void take_signals_in_call(struct kbi_task *self)
{
	bool unused = false;

	if (kbi_signal_is_bound(kbi_thread_of(self)))
		kbi_signal_push(self);
	while (kbi_signal_lets_in(self) && take_next_signal(self, &unused))
		;
}

void kbi_signal_let_in(struct kbi_task *self)
{
	bool pushes = kbi_signal_is_to_push(kbi_thread_of(self));

	if (kbi_likely(!pushes && !kbi_signal_lets_in(self)))
		return;
	kbi_signal_block_all();
	if (pushes)
		kbi_signal_push(self);
	else if (self->vp || kbi_handoff_is_away(kbi_thread_of(self)))
		kbi_signal_kick(kbi_sys_gettid());
}

static KBI_NOINLINE bool take_resumed_signals_slow(struct kbi_task *self)
{
	bool ends_call = false;
	int saved = errno;

	if (!self) {
		self = kbi_self_raw();
		if (self && kbi_handoff_is_away(kbi_thread_of(self)))
			take_signals_in_call(self);
		if (kbi_cancel_async())
			kbi_cancel_act();
		return false;
	}
	bring_mask(self);
	while (kbi_unlikely(kbi_signal_lets_in(self))) {
		if (!take_next_signal(self, &ends_call))
			break;
		if (kbi_unlikely(!self->vp))
			/* the handler has forked, and this is the child: libc's functions from here on */
			break;
		bring_mask(self);
	}
	errno = saved;
	if (kbi_unlikely(kbi_cancel_async()))
		kbi_cancel_act();
	return ends_call;
}

static inline __attribute__((always_inline)) bool take_resumed_signals(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (kbi_likely(self && has_mask(self) && !kbi_signal_lets_in(self) && !kbi_cancel_async()))
		return false;
	return take_resumed_signals_slow(self);
}

bool kbi_signal_resumed_slow(void)
{
	bool ends_call = take_resumed_signals();

	kbi_signal_pin();
	return ends_call;
}

KBI_NOINLINE void kbi_posix_end_turn(struct kbi_task *self)
{
	kbi_quantum_obey(self);
	kbi_signal_resumed();
}

void kbi_signal_last(void)
{
	struct kbi_task *self = kbi_posix_light();

	if (kbi_likely(!a_load_rlx(&kbi_signal_watch)) || !self || kbi_posix_me.at_once)
		return;
	kbi_signal_leaves(self, ~a_load_rlx(kbi_signal_mask(self)));
	kbi_signal_resumed();
}

void kbi_signal_thread_ends(void)
{
	struct kb_thread *t = kbi_thread_of(kbi_self_raw());
	siginfo_t info;

	if (kbi_unlikely(kbi_signal_is_bound(t)))
		kbi_signal_bound_ends(&t->task);
	if (kbi_likely(!a_load_rlx(&kbi_signal_watch)) || !kbi_signal_over(t))
		return;
	a_store_rlx(&t->signals.mask, ~(uint64_t)0);
	while (kbi_signal_get_back(t, ~(uint64_t)0, true, &info))
		kbi_signal_forward(&info, KBI_SIGNAL_TO_PROCESS);
}
