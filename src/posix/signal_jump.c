/* posix/signal_jump.c - siglongjmp and its other names, which may give the thread another signal mask: libc sets the
 * kernel thread's, we note it. Callers: programs. */
#include "posix/signal_priv.h"

#include "os/sys.h"

/* In a handler the mask saved may be that of a virtual processor which let nothing through at that moment. */
static void note_mask(struct kbi_task *self, const struct __jmp_buf_tag *env)
{
	uint64_t saved = kbi_signal_from_set(&env->__saved_mask), mask = saved;
	uint64_t closed = kbi_signal_closed & ~(kbi_signal_never() | kbi_everywhere_bit());

	if ((saved & closed) == closed)
		mask = kbi_posix_me.in_handler ? kbi_posix_me.mask_outside : a_load_rlx(kbi_signal_mask(self));
	kbi_posix_me.in_handler = 0;
	a_store_rlx(kbi_signal_mask(self), mask);
	a_store_rlx(&kbi_signal_vp_mask[self->vp->id], saved);
	kbi_signal_opened(~mask);
}

KBI_POSIX_API void siglongjmp(struct __jmp_buf_tag env[1], int value)
{
	struct kbi_task *self = env->__mask_was_saved ? kbi_posix_light() : NULL;

	kbi_signal_leaves_section();
	if (self)
		note_mask(self, env);
	kbi_libc()->siglongjmp(env, value);
	__builtin_unreachable();
}

KBI_POSIX_ALIAS(longjmp, siglongjmp);
KBI_POSIX_ALIAS(_longjmp, siglongjmp);

KBI_POSIX_API void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	struct kbi_task *self = env->__mask_was_saved ? kbi_posix_light() : NULL;

	kbi_signal_leaves_section();
	if (self)
		note_mask(self, env);
	kbi_libc()->__longjmp_chk(env, value);
	__builtin_unreachable();
}
