/* posix/signal_stack.c - alternate signal stacks. To the kernel they belong to a kernel thread; here each virtual
 * processor's has one of the runtime's, for reports of overflows, and a thread that sets its own brings it along when
 * it comes back from a suspension, as it does with its mask. Callers: programs; signal.c. Never switches. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "core/preempt.h"
#include "os/sys.h"

a32 kbi_signal_stacks;
static struct kbi_task *owner_of[KBI_MAX_VPS]; /* whose stack it has; NULL: its own. Used on the VP only */

/* The kernel thread's own. */
static stack_t runtimes(const struct kbi_body *b)
{
	if (!b->signal_stack)
		return (stack_t){ .ss_flags = SS_DISABLE };
	return (stack_t){ .ss_sp = b->signal_stack, .ss_size = KBI_SIGNAL_STACK };
}

/* What it is to have while self runs on it. */
static stack_t wanted(struct kbi_task *self)
{
	return kbi_posix_me.alternate.ss_sp ? kbi_posix_me.alternate : runtimes(self->vp->body);
}

void kbi_signal_bring_stack(struct kbi_task *self)
{
	struct kbi_task *mine = kbi_posix_me.alternate.ss_sp ? self : NULL;
	unsigned vp = self->vp->id;
	stack_t want;

	if (owner_of[vp] == mine)
		return;
	want = wanted(self);
	if (kbi_sys(SYS_sigaltstack, &want, NULL) == 0)
		owner_of[vp] = mine;
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
	if (!a_load_rlx(&kbi_signal_stacks))
		return;
	((ucontext_t *)context)->uc_stack = wanted(self);
	owner_of[self->vp->id] = kbi_posix_me.alternate.ss_sp ? self : NULL;
}

static bool is_on(const stack_t *s)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return s->ss_sp && here >= (uintptr_t)s->ss_sp && here - (uintptr_t)s->ss_sp < s->ss_size;
}

/* As the kernel would answer. */
static int check(const stack_t *new)
{
	int flags = new->ss_flags & ~(int)(1u << 31); /* SS_AUTODISARM */

	if (is_on(&kbi_posix_me.alternate))
		return EPERM;
	if (flags != 0 && flags != SS_DISABLE && flags != SS_ONSTACK)
		return EINVAL;
	return flags != SS_DISABLE && new->ss_size < (size_t)MINSIGSTKSZ ? ENOMEM : 0;
}

static void change(struct kbi_task *self, const stack_t *new)
{
	stack_t want;

	memset(&kbi_posix_me.alternate, 0, sizeof(kbi_posix_me.alternate));
	if (!(new->ss_flags & SS_DISABLE))
		kbi_posix_me.alternate = *new;
	a_store_rlx(&kbi_signal_stacks, 1);
	a_store_rlx(&kbi_signal_watch, 1);
	kbi_np_enter(self);
	want = wanted(self);
	kbi_sys(SYS_sigaltstack, &want, NULL);
	owner_of[self->vp->id] = kbi_posix_me.alternate.ss_sp ? self : NULL;
	kbi_np_leave(self);
}

KBI_POSIX_API int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	struct kbi_task *self = kbi_posix_light();
	stack_t before = kbi_posix_me.alternate;
	int e = new ? check(new) : 0;

	if (!self)
		return kbi_libc()->sigaltstack(new, old);
	if (!before.ss_sp)
		before.ss_flags = SS_DISABLE;
	else if (is_on(&before))
		before.ss_flags |= SS_ONSTACK;
	if (e) {
		errno = e;
		return -1;
	}
	if (new)
		change(self, new);
	if (old)
		*old = before;
	return 0;
}
