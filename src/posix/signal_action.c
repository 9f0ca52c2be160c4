/* posix/signal_action.c - sigaction and related functions. Once threads run, the kernel's handler
 * of every signal that the program handles is our relay; the program's handler is in the table
 * `acts`. The relay runs it where POSIX wants it: on a lightweight thread that lets the signal
 * through, with that thread's pthread_self and errno, and with the thread's mask enlarged for that
 * time. A signal goes on to the signal dispatcher if it finds a VP without a thread, a thread that
 * is about to be switched away or blocks it, or a thread that it was not sent to. A signal that
 * finds its thread inside the library waits until the thread leaves the library.
 * Callers: the kernel (relay_signal), programs, this family, fork. Handlers run on the interrupted
 * thread's stack or its alternate stack (signal_stack), where the rest of the relay goes on. No
 * locks in the relay; handlers may switch. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "core/contain.h"
#include "core/dump.h"
#include "core/handoff.h"
#include "core/preempt.h"
#include "core/process.h"
#include "core/single_threaded.h"
#include "core/wait.h"
#include "libc/context.h"
#include "os/sys.h"

/* An action as the program has set it. */
struct action {
	void (*handler)(int, siginfo_t *, void *); /* NULL: none */
	uint64_t mask;
	uint32_t flags, turn;
};

/* Two copies, so that a handler never waits for a writer, and never sees half of two actions: the
 * valid copy is number turn & 1. `turn` is increased when the other copy has been written. */
static struct act {
	a32 turn;
	struct {
		aptr handler;
		a64 mask;
		a32 flags;
	} copy[2];
} acts[KBI_SIGNALS + 1];
static a32 lock;

/* Returns the action of sig. Runs in parallel with write_action: if that writes the copy that is
 * being read, two turns later, the copy is read again. */
static struct action action_of(int sig)
{
	struct act *a = &acts[sig];
	struct action is;

	/* acquire: partners are the releases in write_action, so that the turn is read again after the
	 * copy */
	do {
		is.turn = a_load_acq(&a->turn);
		is.handler = (void (*)(int, siginfo_t *, void *))a_load_acq(&a->copy[is.turn & 1].handler);
		is.mask = a_load_acq(&a->copy[is.turn & 1].mask);
		is.flags = a_load_acq(&a->copy[is.turn & 1].flags);
	} while (kbi_unlikely(a_load_rlx(&a->turn) != is.turn));
	return is;
}

/* Writes the action of sig. Under the lock: one writer at a time. */
static void write_action(int sig, struct action is)
{
	struct act *a = &acts[sig];
	uint32_t next = a_load_rlx(&a->turn) + 1;

	/* release: partners are the acquires in action_of: a reader that sees one of these sees the
	 * turn before, too */
	a_store_rel(&a->copy[next & 1].handler, (void *)(uintptr_t)is.handler);
	a_store_rel(&a->copy[next & 1].mask, is.mask);
	a_store_rel(&a->copy[next & 1].flags, is.flags);
	a_store_rel(&a->turn, next);
}

/* ---- the relay ------------------------------------------------------------------------------- */

/* Resets the action that the signal has found (SA_RESETHAND), unless another action has been set
 * meanwhile. */
static void reset_action(int sig, const struct action *found)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	uint64_t mask = kbi_signal_enter(&lock);

	if (a_load_rlx(&acts[sig].turn) == found->turn)
		kbi_libc()->sigaction(sig, &dfl, NULL);
	kbi_signal_leave(&lock, mask);
}

/* Writes the kernel's part of the context's mask: the bytes behind it in a kernel's frame are
 * something else. */
static void write_context_mask(void *context, uint64_t mask)
{
	memcpy(&((ucontext_t *)context)->uc_sigmask, &mask, sizeof mask);
}

/* Returns the context's mask; the handler may have changed it. */
static uint64_t read_context_mask(const void *context)
{
	const uint64_t never = kbi_signal_bit(SIGKILL) | kbi_signal_bit(SIGSTOP) |
			       kbi_signal_bit(KBI_LIBC_FIRST) | kbi_signal_bit(KBI_LIBC_LAST);

	return kbi_signal_from_set(&((const ucontext_t *)context)->uc_sigmask) & ~never;
}

/* A running handler; cancellation or pthread_exit may unwind it. */
struct running {
	struct kbi_task *self;
	void (*handler)(int, siginfo_t *, void *);
	int sig;
	siginfo_t *info;
	void *context;
};

static void on_handler_unwound(struct running *r)
{
	if (!r->self)
		return;
	kbi_signal_leaves_section();
	kbi_posix_me.in_handler--;
	kbi_signal_blocks_for_good(kbi_thread_of(r->self));
	kbi_signal_unwound(r->self);
}

static void run_program_handler(void *arg)
{
	struct running *r = arg;

	r->handler(r->sig, r->info, r->context);
}

/* Restores the mask at the end of a handler. Signals that came for the program while the handler
 * ran wait in the kernel, or at the dispatcher, which gave up and does not wait for these signals
 * any more: tells it. */
static void restore_mask_after_handler(struct kbi_task *self, uint64_t mask)
{
	uint64_t opened = a_load_rlx(kbi_signal_mask(self)) & ~mask;

	a_store_rlx(kbi_signal_mask(self), mask);
	if (opened)
		kbi_signal_opened(opened);
	if (kbi_posix_me.in_handler)
		return;
	kbi_signal_blocks_for_good(kbi_thread_of(self));
	if (kbi_unlikely(a_load_rlx(&kbi_thread_of(self)->signals.pending) & mask))
		kbi_signal_give_back(kbi_thread_of(self));
}

/* Tests for a fault of the interrupted code itself. */
static bool is_own_fault(int sig, const siginfo_t *info)
{
	return info->si_code > 0 && (kbi_signal_is_memory(sig) || sig == SIGFPE || sig == SIGILL ||
		sig == SIGTRAP);
}

/* Gives the VP the mask in a fault's handler, as the kernel has it. If the handler sleeps, the next
 * thread here has to bring its own mask, and must not die of a blocked fault. */
static void note_fault_mask(struct kbi_task *self, uint64_t mask)
{
	a_store_rlx(&kbi_signal_watch, 1);
	if (self->vp)
		a_store_rlx(&kbi_signal_vp_mask[self->vp->id], mask);
}

/* Ends the holds of the call that the handler interrupts. The call has left the kernel: if it is
 * restarted, it uses its descriptors as they are then. The handler may jump out of the call. */
static void end_call_holds(const struct kbi_task *self)
{
	struct kbi_hold *held = kbi_posix_me.held;

	if (kbi_likely(!held) || a_load_rlx(&self->np) > 0)
		return;
	kbi_posix_me.held = NULL;
	kbi_hold_end_all(held, kbi_posix_me.n_held);
}

/* Makes the handler return to where the thread is now, with its mask. */
static void prepare_handler_return(struct kbi_task *self, void *context, uint64_t mask)
{
	if (self->vp)
		kbi_signal_returns(self->vp, context, mask);
	else if (kbi_handoff_is_away(kbi_thread_of(self)))
		write_context_mask(context, mask & ~(kbi_signal_never() | kbi_broadcast_bit()));
	kbi_signal_take_stack(self, context);
	kbi_signal_let_in(self);
}

/* Runs the program's handler on a lightweight thread. The thread's mask is enlarged as the kernel
 * has enlarged its own; closed: the kernel's mask blocks all signals. */
static void run_light_handler(struct kbi_task *self, int sig, siginfo_t *info, void *context,
	bool closed)
{
	struct running r __attribute__((cleanup(on_handler_unwound))) = { .sig = sig, .info = info,
		.context = context };
	const struct kbi_worker *worker = self->vp ? self->vp->worker : NULL;
	struct action is = action_of(sig);
	stack_t alternate = kbi_posix_me.alternate;
	uint64_t before = a_load_rlx(kbi_signal_mask(self)),
		own = is.flags & SA_NODEFER ? 0 : kbi_signal_bit(sig);

	r.handler = is.handler;
	if (!r.handler)
		return;
	if (is.flags & SA_RESETHAND)
		reset_action(sig, &is);
	end_call_holds(self);
	if (kbi_posix_me.in_handler++ == 0) {
		kbi_posix_me.mask_outside = before;
		kbi_signal_blocks_for_now(kbi_thread_of(self), (is.mask | own) & ~before);
	}
	kbi_posix_me.handled++;
	kbi_posix_me.ending += !(is.flags & SA_RESTART);
	a_store_rlx(kbi_signal_mask(self), before | is.mask | own);
	if (is_own_fault(sig, info))
		note_fault_mask(self, before | is.mask | own);
	else if (self->vp)
		kbi_signal_grows(self->vp);
	write_context_mask(context, before);
	kbi_signal_show_stack(context);
	kbi_signal_tells_overruns(info);
	r.self = self;
	if (closed || (is.flags & SA_ONSTACK))
		kbi_signal_kernel_mask(before | is.mask | own);
	kbi_signal_call(is.flags & SA_ONSTACK, &alternate, run_program_handler, &r);
	kbi_context_handled(context);
	r.self = NULL;
	kbi_posix_me.in_handler--;
	/* the thread may have looked for handlers already, and be about to sleep */
	a_store_rlx(&self->permit, 1);
	before = read_context_mask(context);
	kbi_np_enter(self);
	restore_mask_after_handler(self, before);
	kbi_np_leave(self);
	/* the handler interrupted a call that the VP was taken from: the interrupted code expects to be
	 * on a VP */
	if (worker && !self->vp)
		kbi_handoff_end_found(self);
	kbi_np_enter(self);
	prepare_handler_return(self, context, before);
	kbi_np_leave(self);
}

static void continue_light(int sig, siginfo_t *info, void *context)
{
	run_light_handler(kbi_self_raw(), sig, info, context, false);
}

static void continue_closed(int sig, siginfo_t *info, void *context)
{
	run_light_handler(kbi_self_raw(), sig, info, context, true);
}

static bool is_on_alternate(int sig)
{
	return action_of(sig).flags & SA_ONSTACK;
}

void kbi_signal_handle_taken(siginfo_t *info, void *context)
{
	kbi_signal_go_on_from_apart(is_on_alternate(info->si_signo), info, context, continue_closed);
}

/* Runs the program's handler on a kernel thread of libc's. */
static void run_kernel_handler(int sig, siginfo_t *info, void *context)
{
	struct action is = action_of(sig);

	if (is.flags & SA_RESETHAND)
		reset_action(sig, &is);
	if (is.flags & SA_ONSTACK)
		kbi_signal_kernel_mask(read_context_mask(context) | is.mask |
			(is.flags & SA_NODEFER ? 0 : kbi_signal_bit(sig)));
	if (is.handler)
		is.handler(sig, info, context);
}

static bool may_run_here(struct kbi_task *self, int sig, const struct kb_thread *to)
{
	if (to && &to->task != self)
		return false;
	if (kbi_unlikely(kbi_signal_bound_self() != NULL))
		return true; /* the kernel has tested the mask */
	return (kbi_state_kind(a_load_rlx(&self->state)) == KBI_TASK_RUNNING || !self->vp) &&
	       !(a_load_rlx(kbi_signal_mask(self)) & kbi_signal_bit(sig));
}

/* Tests whether the signal interrupts the library's own work, which a handler that forks or jumps
 * would leave half done for ever. abort() wants its handler at once, and is not called there. */
static bool is_inside_library(struct kbi_task *self, int sig, const void *context)
{
	if (!self->vp)
		return false;
	if (a_load_rlx(&kbi_single_threaded.busy))
		return true;
	if (sig == SIGABRT)
		return false;
	return a_load_rlx(&self->np) > 0 || kbi_context_is_ours(kbi_context_at(context));
}

/* Puts the signal into self's list. self takes it when it leaves the library: at the latest when
 * SIGCANCEL comes, which repeats as long as signals are there. If the list is full, or closed, the
 * dispatcher gets the signal. */
static void put_off_signal(struct kbi_task *self, const siginfo_t *info, void *context, bool shared)
{
	struct kb_thread *t = kbi_thread_of(self);
	bool kicks = a_load_rlx(&t->signals.pending) & ~a_load_rlx(kbi_signal_mask(self));

	a_store_rlx(&kbi_signal_watch, 1);
	if (kbi_signal_put(kbi_signal_to(t), info, shared)) {
		kbi_signal_forward(info, shared ? KBI_SIGNAL_TO_PROCESS : kbi_signal_to(t));
	} else {
		/* the thread may have looked already, and be about to sleep */
		a_store_rlx(&self->permit, 1);
		if (!kicks)
			kbi_signal_kick_later();
	}
	if (self->vp)
		kbi_signal_returns(self->vp, context, a_load_rlx(kbi_signal_mask(self)));
}

/* Tests whether real-time signals of this number, which were sent earlier, wait in self's list. */
static bool has_earlier_queued(struct kbi_task *self, int sig)
{
	const struct kb_thread *t = kbi_thread_of(self);

	return kbi_signal_queues(sig) && (a_load_rlx(&t->signals.pending) & kbi_signal_bit(sig)) &&
		!kbi_signal_is_bound(t);
}

/* Runs the handler outside the brackets round a change of the mask, or round the sending to
 * itself. */
static void continue_in_brackets(int sig, siginfo_t *info, void *context)
{
	struct kbi_task *self = kbi_self_raw();
	bool lets_in = kbi_posix_me.lets_in;

	kbi_posix_me.lets_in = false;
	kbi_np_leave(self);
	run_light_handler(self, sig, info, context, false);
	kbi_np_enter(self);
	kbi_posix_me.lets_in = lets_in;
}

/* Tests whether the kernel had no room for the signal's information. */
static bool lacks_signal_info(const siginfo_t *info)
{
	return info->si_code == SI_USER && info->si_pid == 0;
}

/* Tests whether the thread is in the brackets round the sending to itself, and sends this
 * signal. */
static bool is_awaited_signal(const siginfo_t *info)
{
	const siginfo_t *sent = kbi_posix_me.raises;

	return sent && sent->si_signo == info->si_signo &&
	       (lacks_signal_info(info) ||
		(sent->si_code == info->si_code && sent->si_value.sival_ptr == info->si_value.sival_ptr));
}

/* Ends the wait for the signal that the thread sends itself. True: it is the signal, and the thread
 * is in brackets. */
static bool take_awaited(const siginfo_t *info)
{
	bool is = is_awaited_signal(info);

	if (is)
		kbi_posix_me.raises = NULL;
	return is && a_load_rlx(&kbi_self_raw()->np) > 0;
}

/* Handles the signal; self runs and lets it through. */
static void handle_own_signal(struct kbi_task *self, siginfo_t *info, void *context, bool shared)
{
	bool on_alternate = is_on_alternate(info->si_signo), awaited = take_awaited(info);

	if (!awaited && kbi_unlikely(has_earlier_queued(self, info->si_signo))) {
		put_off_signal(self, info, context, shared);
		kbi_signal_kick(kbi_sys_gettid());
	} else if (awaited || kbi_signal_is_let_in(self)) {
		kbi_signal_go_on(on_alternate, info, context, continue_in_brackets);
	} else if (!is_inside_library(self, info->si_signo, context)) {
		kbi_signal_go_on(on_alternate, info, context, continue_light);
	} else {
		put_off_signal(self, info, context, shared);
	}
}

static void handle_fault(siginfo_t *info, void *context)
{
	int sig = info->si_signo;

	kbi_signal_go_on(is_on_alternate(sig), info, context,
		take_awaited(info) ? continue_in_brackets : continue_light);
}

/* Tests for the runtime's tick. The runtime sends it only to its own kernel threads; a signal of
 * the program with that number carries an address there. */
static bool is_tick(struct kbi_task *self, const siginfo_t *info)
{
	bool untold = lacks_signal_info(info);

	if (kbi_posix_forked || (!untold && info->si_code != SI_TKILL))
		return false;
	if (!untold && info->si_pid != getpid() && !kbi_sys_from.processes)
		return false;
	return self ? self->vp || kbi_handoff_is_away(kbi_thread_of(self)) :
		kbi_worker_of_tid(kbi_sys_gettid()) != NULL;
}

/* Tests whether the signal is for this thread only: the kernel has sent it to the calling thread,
 * or a sender has sent it to this kernel thread. Where VPs are processes, the program's signals
 * come through the dispatcher. */
static bool is_for_this_thread(int sig, const siginfo_t *info, enum kbi_signal_address address)
{
	if (address == KBI_SIGNAL_PACKED)
		return false;
	if (kbi_sys_from.processes || info->si_code == SI_TKILL || is_awaited_signal(info))
		return true;
	if (sig == SIGPIPE || sig == SIGXFSZ)
		return info->si_code == SI_USER && info->si_pid == getpid();
	/* a timer that counts computing time of the process: the kernel asks the thread first that it
	 * finds computing */
	if ((sig == SIGPROF || sig == SIGVTALRM) && info->si_code == SI_KERNEL)
		return true;
	if (info->si_code == SI_TIMER)
		return a_load_rlx(&kbi_posix_me.own_timers) & kbi_signal_bit(sig);
	return sig != SIGCHLD && info->si_code >= POLL_IN && info->si_code <= POLL_HUP &&
		a_load_rlx(&kbi_posix_me.owns);
}

/* Passes the signal on: self runs here, or is in a blocking call, and does not take it. The
 * interrupted code must not notice. */
static void pass_signal_on(struct kbi_task *self, const siginfo_t *info, struct kbi_signal_to to,
	void *context)
{
	kbi_signal_forward(info, to);
	kbi_context_make_any_again(context);
	if (self->vp)
		kbi_signal_returns(self->vp, context, a_load_rlx(kbi_signal_mask(self)));
}

static void relay_signal(int sig, siginfo_t *info, void *context)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_signal_to to;
	struct kbi_vp *vp;
	bool threads;
	enum kbi_signal_address address = kbi_signal_unpack(info, &to);

	if (address != KBI_SIGNAL_PLAIN || is_awaited_signal(info))
		kbi_signal_has_come(sig); /* the kernel has room for the next signal of this number */
	if (address == KBI_SIGNAL_LATE)
		return;
	if (kbi_unlikely(kbi_signal_bound_self() != NULL))
		kbi_signal_note_kernel_mask(self, read_context_mask(context));
	if (sig == kbi_preempt_signal() && !to.t &&
		(kbi_preempt_is_wish(info) || is_tick(self, info))) {
		if (self && self->vp)
			kbi_signal_interrupts(self->vp, read_context_mask(context));
		kbi_preempt_tick(info, context);
		return;
	}
	if (kbi_process_is_copy(info) || kbi_preempt_mends(info, context))
		return;
	vp = kbi_signal_idle_vp(self);
	threads = to.t || is_for_this_thread(sig, info, address);
	if (vp && !is_own_fault(sig, info) &&
		(!kbi_signal_is_memory(sig) || kbi_signal_has_dispatcher())) {
		kbi_signal_forward(info, to);
		kbi_signal_returns_idle(vp, context);
	} else if (!self || (!self->vp && !kbi_handoff_is_away(kbi_thread_of(self)))) {
		run_kernel_handler(sig, info, context);
	} else if (is_own_fault(sig, info)) {
		handle_fault(info, context);
	} else if (may_run_here(self, sig, to.t) &&
		   (threads || !kbi_signal_has_dispatcher() ||
		    kbi_signal_is_for_now(kbi_thread_of(self), sig))) {
		handle_own_signal(self, info, context, !threads);
	} else {
		pass_signal_on(self, info, to, context);
	}
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_program_handler(const struct sigaction *sa)
{
	return sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN &&
		sa->sa_sigaction != relay_signal;
}

/* Converts the kernel's action into the action that the program has set. */
static void show_program_action(int sig, struct sigaction *sa)
{
	struct action is = action_of(sig);

	if (sa->sa_sigaction == relay_signal) {
		sa->sa_sigaction = is.handler;
		sa->sa_flags = (int)is.flags;
		kbi_signal_to_set(&sa->sa_mask,
			is.mask & ~(kbi_signal_bit(SIGKILL) | kbi_signal_bit(SIGSTOP)));
	} else if (kbi_vp_n && kbi_signal_is_memory(sig) && kbi_preempt_shows(sig, sa)) {
		return;
	} else if (sig == SIGQUIT && kbi_dump_is_action(sa)) {
		memset(sa, 0, sizeof(*sa));
	} else if ((sig == kbi_preempt_signal() || kbi_contain_handles(sig)) && kbi_vp_n &&
		sa->sa_handler != SIG_IGN) {
		memset(sa, 0, sizeof(*sa));
	}
}

static int install_program_action(int sig, const struct sigaction *new)
{
	/* the tick comes in handlers, too, or a thread that computes in a handler would keep its VP */
	uint64_t mask = kbi_signal_from_set(&new->sa_mask) &
		~(kbi_signal_never() | kbi_broadcast_bit());
	struct sigaction ours = *new;

	kbi_signal_to_set(&ours.sa_mask, mask);
	write_action(sig, (struct action){ .handler = new->sa_sigaction,
					    .mask = kbi_signal_from_set(&new->sa_mask),
					    .flags = (uint32_t)new->sa_flags });
	ours.sa_sigaction = relay_signal;
	ours.sa_flags = (new->sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
	if (sig == kbi_preempt_signal() && kbi_preempt_is_apart())
		ours.sa_flags |= SA_ONSTACK;
	else if (sig == kbi_preempt_signal() ||
		(!kbi_signal_frame_moves() && !kbi_signal_is_memory(sig)))
		ours.sa_flags &= ~SA_ONSTACK;
	/* no signal comes in between on the kernel thread's stack */
	if (ours.sa_flags & SA_ONSTACK && kbi_signal_frame_moves())
		kbi_signal_to_set(&ours.sa_mask, ~kbi_broadcast_bit());
	return kbi_libc()->sigaction(sig, &ours, NULL);
}

static int set_program_action(int sig, const struct sigaction *new)
{
	if (is_program_handler(new))
		return install_program_action(sig, new);
	/* the tick keeps its signal; the tick's handler ignores the program's signals by default */
	if (sig == kbi_preempt_signal() && new->sa_sigaction != relay_signal) {
		write_action(sig, (struct action){ 0 });
		return 0;
	}
	if (kbi_signal_is_memory(sig) && new->sa_handler == SIG_DFL)
		return kbi_preempt_by_default(sig);
	return new->sa_sigaction == relay_signal ? 0 : kbi_libc()->sigaction(sig, new, NULL);
}

static bool by_libc(int sig)
{
	return !kbi_vp_n || !kbi_signal_ok(sig) || sig == SIGKILL || sig == SIGSTOP;
}

void kbi_signal_after_fork(struct kbi_task *self)
{
	kbi_signal_pool_after_fork();
	if (self)
		a_store_rlx(&kbi_thread_of(self)->signals.pending, 0);
	kbi_lock_leave(&lock);
}

/* Performs sigaction in a child of vfork, which has actions of its own in the kernel, while our
 * table is in memory that belongs to its parent. */
static int call_sigaction_in_child(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct sigaction before;

	if (kbi_libc()->sigaction(sig, new, &before))
		return -1;
	show_program_action(sig, &before);
	if (old)
		*old = before;
	return 0;
}

KBI_POSIX_API int sigaction(int sig, const struct sigaction *restrict new,
	struct sigaction *restrict old)
{
	struct sigaction before;
	uint64_t mask;
	int e;

	kbi_posix_let_turn_end();
	if (by_libc(sig))
		return kbi_libc()->sigaction(sig, new, old);
	if (kbi_posix_in_vfork())
		return call_sigaction_in_child(sig, new, old);
	mask = kbi_signal_enter(&lock);
	e = kbi_libc()->sigaction(sig, NULL, &before);
	show_program_action(sig, &before);
	if (e == 0 && new)
		e = set_program_action(sig, new);
	kbi_signal_leave(&lock, mask);
	if (e == 0 && old)
		*old = before;
	if (e == 0 && new && is_program_handler(new))
		kbi_signal_need_dispatcher();
	return e;
}

KBI_POSIX_ALIAS(__sigaction, sigaction);

void kbi_signal_adopt_handlers(void)
{
	struct sigaction sa;

	for (int sig = 1; sig <= KBI_SIGNALS; sig++)
		if (kbi_signal_ok(sig) && kbi_libc()->sigaction(sig, NULL, &sa) == 0 &&
			is_program_handler(&sa))
			install_program_action(sig, &sa);
}

bool kbi_signal_has_handler(int sig)
{
	return action_of(sig).handler;
}

/* Ignores handlers of memory faults, which are for the faulting thread itself: many runtimes have
 * them, and no process sends these signals. */
bool kbi_signal_any_handler(void)
{
	for (int sig = 1; sig <= KBI_SIGNALS; sig++)
		if (!kbi_signal_is_memory(sig) && action_of(sig).handler)
			return true;
	return false;
}

bool kbi_signal_ignored(int sig)
{
	struct kbi_kaction a = { 0 };

	if (sig == kbi_preempt_signal())
		return !action_of(sig).handler;
	if (kbi_kaction(sig, NULL, &a) || (uintptr_t)a.handler == (uintptr_t)SIG_IGN)
		return true;
	return (uintptr_t)a.handler == (uintptr_t)SIG_DFL &&
	       (sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH);
}
