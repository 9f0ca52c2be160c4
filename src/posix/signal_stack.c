/* posix/signal_stack.c - alternate signal stacks. To the kernel they belong to a kernel thread; here each virtual
 * processor's has one of the runtime's, for reports of overflows, and a thread that sets its own brings it along when
 * it comes back from a suspension, as it does with its mask.
 * A handler may be suspended, so none of the program's may run on the runtime's stack, which others would overwrite:
 * as long as nobody has set a stack SA_ONSTACK is not said to the kernel (signal_action.c), and after that threads
 * without one have none, not even for reports, where a handler asks for one. A thread that is suspended in a handler on
 * its own takes it away from the kernel thread (SS_AUTODISARM). Callers: programs; signal.c. Never switches. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "core/preempt.h"
#include "os/sys.h"

a32 kbi_signal_stacks;
a32 kbi_signal_on_stack;
/* What the kernel thread has: NULL its own, nothing, that of the thread, or it is unknown. Used on the VP only. */
static const void *owner_of[KBI_MAX_VPS];
static const char nothing, unknown;

enum { AUTODISARM = (int)(1u << 31) };

/* The kernel thread's own. */
static stack_t runtimes(const struct kbi_body *b)
{
	if (!b->signal_stack)
		return (stack_t){ .ss_flags = SS_DISABLE };
	return (stack_t){ .ss_sp = b->signal_stack, .ss_size = KBI_SIGNAL_STACK };
}

static bool is_on(const stack_t *s)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return s->ss_sp && here >= (uintptr_t)s->ss_sp && here - (uintptr_t)s->ss_sp < s->ss_size;
}

/* What it is to have while self runs on it. On its own already: none, so that a further handler stays where it is. */
static const void *wanted(struct kbi_task *self, bool there, stack_t *s)
{
	*s = kbi_posix_me.alternate;
	s->ss_flags |= AUTODISARM;
	if (s->ss_sp && !there)
		return self;
	*s = runtimes(self->vp->body);
	if (!kbi_posix_me.alternate.ss_sp && !a_load_rlx(&kbi_signal_on_stack))
		return NULL;
	*s = (stack_t){ .ss_flags = SS_DISABLE };
	return &nothing;
}

/* 0 or what the kernel says. */
static int give(struct kbi_task *self)
{
	unsigned vp = self->vp->id;
	stack_t s;
	const void *owner = wanted(self, is_on(&kbi_posix_me.alternate), &s);
	long e = 0;

	if (owner_of[vp] != owner)
		e = kbi_sys(SYS_sigaltstack, &s, NULL);
	if (e == 0)
		owner_of[vp] = owner;
	return (int)-e;
}

bool kbi_signal_stack_is_others(const struct kbi_task *self)
{
	const void *owner = a_load_rlx(&kbi_signal_stacks) && self->vp ? owner_of[self->vp->id] : NULL;

	return owner && owner != self && owner != &nothing && owner != &unknown;
}

void kbi_signal_bring_stack(struct kbi_task *self)
{
	give(self);
}

void kbi_signal_stack_adopted(struct kbi_vp *vp)
{
	owner_of[vp->id] = NULL;
}

void kbi_signal_stack_leaves(const struct kbi_body *b)
{
	stack_t own = runtimes(b);

	if (a_load_rlx(&kbi_signal_stacks))
		kbi_sys(SYS_sigaltstack, &own, NULL);
}

/* The kernel takes the stack from the context when the handler returns, perhaps on another VP. */
void kbi_signal_returns_on(struct kbi_task *self, void *context)
{
	if (!a_load_rlx(&kbi_signal_stacks) || !self->vp)
		return;
	owner_of[self->vp->id] = wanted(self, kbi_posix_me.in_handler > 0, &((ucontext_t *)context)->uc_stack);
}

/* A handler of ours begins: the kernel has taken a thread's own stack away until it returns. */
void kbi_signal_stack_interrupted(struct kbi_task *self)
{
	if (a_load_rlx(&kbi_signal_stacks) && self->vp)
		owner_of[self->vp->id] = &unknown; /* asked for again at the next look */
}

/* A handler is left by a jump or unwound: the kernel would set the stack again at its return only. Still on it: this once
 * without SS_AUTODISARM, so that the kernel sees where we are. */
void kbi_signal_stack_left(struct kbi_task *self)
{
	if (!a_load_rlx(&kbi_signal_stacks) || !self->vp)
		return;
	if (kbi_posix_me.alternate.ss_sp)
		kbi_sys(SYS_sigaltstack, &kbi_posix_me.alternate, NULL);
	owner_of[self->vp->id] = &unknown;
}

/* Before the kernel is asked, which sees none in use. */
static int check(const stack_t *new)
{
	int flags = new->ss_flags & ~AUTODISARM;

	if (is_on(&kbi_posix_me.alternate))
		return EPERM;
	return flags != 0 && flags != SS_DISABLE && flags != SS_ONSTACK ? EINVAL : 0;
}

static int change(struct kbi_task *self, const stack_t *new, const stack_t *before)
{
	int e;

	memset(&kbi_posix_me.alternate, 0, sizeof(kbi_posix_me.alternate));
	if (!(new->ss_flags & SS_DISABLE))
		kbi_posix_me.alternate = *new;
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_np_enter(self);
	owner_of[self->vp->id] = &unknown;
	e = give(self);
	kbi_np_leave(self);
	if (e)
		kbi_posix_me.alternate = *before;
	else if (kbi_posix_me.alternate.ss_sp && !a_xchg_acqrel(&kbi_signal_stacks, 1))
		kbi_signal_stacks_begin();
	return e;
}

KBI_POSIX_API int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	struct kbi_task *self = kbi_posix_light();
	stack_t before = kbi_posix_me.alternate;
	int e = new ? check(new) : 0;

	if (!self)
		return kbi_libc()->sigaltstack(new, old);
	if (new && !e)
		e = change(self, new, &before);
	if (e) {
		errno = e;
		return -1;
	}
	if (!before.ss_sp)
		before.ss_flags = SS_DISABLE;
	else if (is_on(&before))
		before.ss_flags |= SS_ONSTACK;
	if (old)
		*old = before;
	return 0;
}
