/* posix/signal_stack.c - alternate signal stacks. To the kernel they belong to a kernel thread, and it would use that of a
 * thread which runs elsewhere by now, or sleeps in a handler: so the kernel knows only those of the runtime, for faults,
 * and the relay (signal_action.c) calls the handler on the thread's own. The frame that the kernel makes stays on the
 * stack that was interrupted. Callers: programs; signal_action. Never switches. */
#include "posix/signal_priv.h"

#include <string.h>
#include <ucontext.h>

#include "arch/arch.h"
#include "core/preempt.h"
#include "os/sys.h"

enum { AUTODISARM = (int)(1u << 31), LEAST = 2048 /* the kernel's, on most machines */ };

/* The kernel takes the kernel thread's stack from the context when the handler returns, perhaps on another one. */
void kbi_signal_returns_on(struct kbi_task *self, void *context)
{
	stack_t *s = &((ucontext_t *)context)->uc_stack;
	const struct kbi_body *b = self->vp->body;

	*s = (stack_t){ .ss_flags = SS_DISABLE };
	if (b->signal_stack)
		*s = (stack_t){ .ss_sp = b->signal_stack, .ss_size = KBI_SIGNAL_STACK };
}

static bool is_on(const stack_t *s)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return s->ss_sp && here >= (uintptr_t)s->ss_sp && here - (uintptr_t)s->ss_sp < s->ss_size;
}

void kbi_signal_call(bool on_alternate, void (*call)(void *), void *arg)
{
	stack_t s = kbi_posix_me.alternate;

	if (!on_alternate || !s.ss_sp || is_on(&s)) {
		call(arg);
		return;
	}
	if (s.ss_flags & AUTODISARM)
		memset(&kbi_posix_me.alternate, 0, sizeof(kbi_posix_me.alternate));
	kbi_ctx_call_on((char *)s.ss_sp + s.ss_size, call, arg);
	if (s.ss_flags & AUTODISARM)
		kbi_posix_me.alternate = s;
}

/* As the kernel would answer. */
static int check(const stack_t *new)
{
	int flags = new->ss_flags & ~AUTODISARM;

	if (is_on(&kbi_posix_me.alternate))
		return EPERM;
	if (flags != 0 && flags != SS_DISABLE && flags != SS_ONSTACK)
		return EINVAL;
	return flags != SS_DISABLE && new->ss_size < LEAST ? ENOMEM : 0;
}

KBI_POSIX_API int sigaltstack(const stack_t *restrict new, stack_t *restrict old)
{
	struct kbi_task *self = kbi_posix_light();
	stack_t before = kbi_posix_me.alternate;
	int e = new ? check(new) : 0;

	if (!self)
		return kbi_libc()->sigaltstack(new, old);
	if (e) {
		errno = e;
		return -1;
	}
	if (new) {
		memset(&kbi_posix_me.alternate, 0, sizeof(kbi_posix_me.alternate));
		if (!(new->ss_flags & SS_DISABLE))
			kbi_posix_me.alternate = *new;
	}
	if (!before.ss_sp)
		before.ss_flags = SS_DISABLE;
	else if (is_on(&before))
		before.ss_flags |= SS_ONSTACK;
	if (old)
		*old = before;
	return 0;
}
