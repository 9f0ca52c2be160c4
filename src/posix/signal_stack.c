/* posix/signal_stack.c - alternate signal stacks. For the kernel an alternate stack belongs to a
 * kernel thread. It would use the stack of a thread that runs elsewhere by now, or sleeps in a
 * handler. So the kernel knows only the runtime's alternate stacks, one for each kernel thread; on
 * these it delivers all signals whose handlers ask for an alternate stack, with all signals
 * blocked. The relay (signal_action) has the frame moved to where the kernel would have placed it
 * for this thread, and calls the handler there. On machines where frames do not move
 * (os/signal_frame) the handler is called on the thread's alternate stack, and the kernel's frame
 * stays where it is: on the interrupted stack or, for faults, on the kernel thread's.
 * Callers: programs; signal, signal_action, signal_sigcancel, signal_jump, fork. Runs on the
 * thread's stack, also in handlers. No locks. Never switches. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "arch/arch.h"
#include "core/preempt.h"
#include "core/worker_pool.h"
#include "libc/real.h"
#include "os/lock.h"
#include "libc/return_hook.h"
#include "os/signal_frame.h"
#include "os/sys.h"

enum { AUTODISARM = (int)(1u << 31) };

/* Tests whether sp is on s by the kernel's rule; a thread is never on a stack that is disarmed when
 * a handler begins. */
static bool is_on_signal_stack(const stack_t *s, uintptr_t sp)
{
	return s->ss_sp && !(s->ss_flags & AUTODISARM) && sp > (uintptr_t)s->ss_sp &&
		sp - (uintptr_t)s->ss_sp <= s->ss_size;
}

static uintptr_t stack_pointer_here(void)
{
	return (uintptr_t)__builtin_frame_address(0);
}

/* ---- where the runtime's own signals are taken ----------------------------------------------- */

enum {
	PLACE = 64 << 10,        /* bytes for frames of the runtime's signals, and a switch */
	/* end of these frames, from the low end of a thread's own stack: libraries put guards at its
	 * very end */
	PLACE_HIGH = 128 << 10,
	PLACE_STACK = 512 << 10, /* smaller stacks may be in use as far as there */
};

static char *mains_place;

/* Tests whether sp is in the place for such frames on the thread's stack. They lie there if the
 * thread is on none of its own stacks. */
static bool is_in_frame_place(const struct kb_thread *t, uintptr_t sp)
{
	uintptr_t low = (uintptr_t)mains_place;

	if (!t->is_main)
		low = t->stack && !t->user_stack ? (uintptr_t)t->stack->low + PLACE_HIGH - PLACE : 0;
	return low && sp - low <= PLACE;
}

static bool is_on_own_thread_stack(const struct kb_thread *t, uintptr_t sp)
{
	if (t->stack)
		return sp - (uintptr_t)t->stack->low < t->stack->size;
	return !t->is_main || kbi_return_hook_is_on_main(sp) || sp - (uintptr_t)mains_place <= PLACE;
}

/* Returns the top of the place for a frame of the runtime, or 0: none. A thread with an alternate
 * stack may run code on a foreign stack: compilers of other languages keep their stacks in memory
 * where nothing may be written below the stack pointer. The program's handlers use the thread's
 * alternate stack; ours use the far end of the thread's own stack. */
static uintptr_t runtime_frame_top(uintptr_t sp)
{
	const struct kb_thread *t = kbi_thread_of(kbi_self_raw());
	const stack_t *s = &kbi_posix_me.alternate;

	/* in a switch the stack pointer may be another thread's */
	if (!t || !s->ss_sp || is_on_signal_stack(s, sp) || a_load_rlx(&t->task.np) > 0 ||
		is_on_own_thread_stack(t, sp))
		return sp - KBI_SIGNAL_FRAME_RED;
	/* such a frame may have been left there when the handler began. A running handler alone is no
	 * evidence: if the program has left it by a jump of its own, in_handler never returns to 0 */
	if (kbi_posix_me.in_handler && kbi_posix_me.apart)
		return 0;
	if (t->is_main)
		return mains_place ? (uintptr_t)mains_place + PLACE : 0;
	return t->user_stack || t->stack->size < PLACE_STACK ? 0 :
		(uintptr_t)t->stack->low + PLACE_HIGH;
}

/* ---- where a handler runs -------------------------------------------------------------------- */

bool kbi_signal_on_alternate(void)
{
	return is_on_signal_stack(&kbi_posix_me.alternate, stack_pointer_here());
}

/* Finds the place for a frame by the kernel's rule: below *top, and not below *low. */
static void find_frame_place(uintptr_t sp, bool on_alternate, uintptr_t *low, uintptr_t *top)
{
	const stack_t *s = &kbi_posix_me.alternate;
	bool on = is_on_signal_stack(s, sp);

	if (on_alternate && s->ss_sp && !on) {
		kbi_posix_me.entered = *s;
		*low = (uintptr_t)s->ss_sp;
		*top = *low + s->ss_size;
	} else {
		*low = on ? (uintptr_t)s->ss_sp : 0;
		*top = sp - KBI_SIGNAL_FRAME_RED;
	}
}

/* Tests whether sp is on the kernel thread's own alternate stack. */
static bool is_on_runtime_stack(const ucontext_t *uc, uintptr_t sp)
{
	return is_on_signal_stack(&uc->uc_stack, sp);
}

/* Ends the program as the kernel does when there is no room for a handler. */
static void end_program(void)
{
	struct sigaction by_default = { .sa_handler = SIG_DFL };

	kbi_real.sigaction(SIGSEGV, &by_default, NULL);
	kbi_signal_kernel_mask(0);
	kbi_sys_signal(kbi_sys_gettid(), SIGSEGV);
}

/* Called when a handler is about to begin: notes whether a frame in our place was interrupted. */
static void note_apart(const struct kb_thread *t, uintptr_t sp)
{
	if (!kbi_posix_me.in_handler)
		kbi_posix_me.apart = false;
	if (kbi_unlikely(is_in_frame_place(t, sp)))
		kbi_posix_me.apart = true;
}

/* Calls fn in the moved frame, or here. apart: the frame is not where the kernel would have placed
 * it for a handler without SA_ONSTACK. */
static void continue_in_frame(bool on_alternate, siginfo_t *info, void *context,
	kbi_signal_frame_handler *fn, bool apart)
{
	uintptr_t sp = kbi_signal_frame_interrupted(context), at = kbi_signal_frame_low(info, context),
		low, top;

	if (kbi_signal_frame_moves() && !is_on_runtime_stack(context, sp)) {
		note_apart(kbi_thread_of(kbi_self_raw()), sp);
		find_frame_place(sp, on_alternate, &low, &top);
		apart |= is_on_runtime_stack(context, at);
		if (apart || (top != sp - KBI_SIGNAL_FRAME_RED && !(at >= low && at < top))) {
			kbi_signal_frame_move(info, context, low, top, fn);
			end_program();
		}
	}
	fn(info->si_signo, info, context);
}

void kbi_signal_go_on(bool on_alternate, siginfo_t *info, void *context,
	kbi_signal_frame_handler *fn)
{
	continue_in_frame(on_alternate, info, context, fn, false);
}

void kbi_signal_go_on_from_apart(bool on_alternate, siginfo_t *info, void *context,
	kbi_signal_frame_handler *fn)
{
	uintptr_t sp = kbi_signal_frame_interrupted(context);

	continue_in_frame(on_alternate, info, context, fn,
		kbi_preempt_is_apart() && runtime_frame_top(sp) != sp - KBI_SIGNAL_FRAME_RED);
}

void kbi_signal_call(bool on_alternate, const stack_t *s, void (*call)(void *), void *arg)
{
	if (kbi_signal_frame_moves() || !on_alternate || !s->ss_sp ||
		is_on_signal_stack(s, stack_pointer_here()))
		call(arg);
	else
		kbi_ctx_call_on((char *)s->ss_sp + s->ss_size, call, arg);
}

size_t kbi_signal_room(uintptr_t sp)
{
	const stack_t *s = &kbi_posix_me.entered;

	return s->ss_sp && sp - (uintptr_t)s->ss_sp <= s->ss_size ? sp - (uintptr_t)s->ss_sp : 0;
}

/* ---- the alternate stack in a handler's context ---------------------------------------------- */

static stack_t reported_alt_stack(uintptr_t sp)
{
	stack_t s = kbi_posix_me.alternate;

	s.ss_flags &= AUTODISARM;
	if (!s.ss_sp)
		s.ss_flags = SS_DISABLE;
	else if (is_on_signal_stack(&s, sp))
		s.ss_flags = SS_ONSTACK;
	return s;
}

/* Makes the runtime's handlers use the alternate stacks. Called with the first alternate stack,
 * before any thread has it. */
static void move_handlers_apart(void)
{
	static a32 begun; /* 0: no, 1: in progress, 2: done */
	uint32_t no = 0;

	/* acquire: partner is the release in kbi_lock_tell */
	if (!kbi_signal_frame_moves() || a_load_acq(&begun) == 2)
		return;
	if (a_cas_acq(&begun, &no, 1)) {
		mains_place = kbi_sys_map(PLACE);
		kbi_preempt_apart(runtime_frame_top);
		kbi_signal_sigcancel_apart();
		kbi_lock_tell(&begun, 2);
	}
	kbi_lock_await(&begun, 1);
}

/* Sets the thread's alternate stack; returns what the kernel would answer. sp: the stack pointer to
 * test. */
static int set_alternate_stack(const stack_t *new, uintptr_t sp)
{
	int mode = new->ss_flags & ~AUTODISARM;

	if (is_on_signal_stack(&kbi_posix_me.alternate, sp))
		return EPERM;
	if (mode != 0 && mode != SS_DISABLE && mode != SS_ONSTACK)
		return EINVAL;
	if (mode != SS_DISABLE && new->ss_size < KBI_SIGNAL_FRAME_LEAST)
		return ENOMEM;
	kbi_posix_me.alternate = (stack_t){ 0 };
	if (mode == SS_DISABLE)
		return 0;
	move_handlers_apart();
	kbi_posix_me.alternate = (stack_t){ .ss_sp = new->ss_sp, .ss_size = new->ss_size,
		.ss_flags = new->ss_flags };
	return 0;
}

void kbi_signal_show_stack(void *context)
{
	ucontext_t *uc = context;

	/* as in the kernel, without SS_ONSTACK */
	uc->uc_stack = kbi_posix_me.alternate;
	if (!uc->uc_stack.ss_sp)
		uc->uc_stack.ss_flags = SS_DISABLE;
	if (uc->uc_stack.ss_flags & AUTODISARM)
		kbi_posix_me.alternate = (stack_t){ 0 };
}

/* Writes the kernel thread's alternate stack into the context: the kernel takes it from there when
 * the handler returns, perhaps on another kernel thread. In the child of fork, which began in the
 * handler, the thread's own alternate stack is the kernel thread's. */
void kbi_signal_returns_on(struct kbi_task *self, void *context)
{
	stack_t *s = &((ucontext_t *)context)->uc_stack;
	const struct kbi_worker *b = self->vp ? self->vp->worker : NULL;

	if (!b && kbi_handoff_is_away(kbi_thread_of(self)))
		b = &kbi_workers[kbi_thread_of(self)->worker];
	if (!b)
		return;
	*s = (stack_t){ .ss_flags = SS_DISABLE };
	if (b->signal_stack)
		*s = (stack_t){ .ss_sp = b->signal_stack, .ss_size = KBI_SIGNAL_STACK };
}

void kbi_signal_take_stack(struct kbi_task *self, void *context)
{
	set_alternate_stack(&((ucontext_t *)context)->uc_stack, stack_pointer_here());
	kbi_signal_returns_on(self, context);
}

void kbi_signal_stack_after_fork(void)
{
	stack_t s = reported_alt_stack(0);

	kbi_sys(SYS_sigaltstack, &s, NULL);
}

/* ---- for programs ---------------------------------------------------------------------------- */

KBI_POSIX_API int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	struct kbi_task *self = kbi_posix_light();
	stack_t before;
	int e = 0;

	if (!self)
		return kbi_libc()->sigaltstack(new, old);
	before = reported_alt_stack(stack_pointer_here());
	if (new)
		e = set_alternate_stack(new, stack_pointer_here());
	if (e) {
		errno = e;
		return -1;
	}
	if (old)
		*old = before;
	return 0;
}
