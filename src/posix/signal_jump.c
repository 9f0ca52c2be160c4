/* posix/signal_jump.c - siglongjmp and its other names, which may give the thread another signal
 * mask. Before libc jumps, the thread has that mask, and pending signals that the mask lets through
 * have been handled. libc then sets the kernel thread's mask once more.
 * Callers: programs. Runs on the thread's stack. No locks. Runs handlers, and may switch. */
#include "posix/signal_priv.h"

#include "os/sys.h"

/* Gives self the saved mask. In a handler, the saved mask may be that of a VP which let nothing
 * through at that moment; then self keeps its mask from before. */
static void note_mask(struct kbi_task *self, const struct __jmp_buf_tag *env)
{
	uint64_t saved = kbi_signal_from_set(&env->__saved_mask), mask = saved;
	uint64_t unseen = kbi_signal_never() | kbi_broadcast_bit(),
		closed = kbi_signal_closed & ~unseen;
	uint64_t before = kbi_posix_me.in_handler ? kbi_posix_me.mask_outside :
		a_load_rlx(kbi_signal_mask(self));

	if ((saved & closed) == closed)
		mask = before;
	/* signals that the kernel never blocks were not in the mask that libc saved */
	mask = (mask & ~unseen) | (before & unseen);
	kbi_posix_me.in_handler = 0;
	kbi_signal_blocks_for_good(kbi_thread_of(self));
	if (a_load_rlx(&self->np)) {
		a_store_rlx(kbi_signal_mask(self), mask);
		kbi_signal_opened(~mask);
	} else {
		kbi_signal_take_mask(self, mask);
	}
	if (self->vp)
		a_store_rlx(&kbi_signal_vp_mask[self->vp->id], saved);
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

/* libc refuses a jump to a lower address, where frames are gone, unless the kernel says that the
 * thread is on its alternate stack. The kernel does not know that stack (signal_stack.c). */
KBI_POSIX_API void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	struct kbi_task *self = env->__mask_was_saved ? kbi_posix_light() : NULL;

	kbi_signal_leaves_section();
	if (self)
		note_mask(self, env);
	if (kbi_signal_on_alternate())
		kbi_libc()->siglongjmp(env, value);
	kbi_libc()->__longjmp_chk(env, value);
	__builtin_unreachable();
}
