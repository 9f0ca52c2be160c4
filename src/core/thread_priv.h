/* core/thread_priv.h - for core/thread*: the marks that `join` of a thread holds instead of a
 * joiner (meaning: thread.c), and the return of a thread's resources. Inside np brackets, no locks,
 * never switches. */
#ifndef KBI_THREAD_PRIV_H
#define KBI_THREAD_PRIV_H

#include "core/vp.h"

/* odd: the thread has ended by itself */
#define KBI_JOIN_ENDED ((void *)1)
#define KBI_JOIN_DETACHED ((void *)2)
#define KBI_JOIN_GIVEN ((void *)3)
#define KBI_JOIN_LOST ((void *)4) /* by a crash */

/* Returns vp's cache of descriptors. vp: where the caller runs; NULL: on no VP. */
static inline struct kbi_descriptor_cache *kbi_thread_cache(struct kbi_vp *vp)
{
	return vp ? &vp->threads : NULL;
}

/* Gives back t's stack if it is the program's own, or if the caller runs on no VP. */
void kbi_thread_put_elsewhere(struct kbi_vp *vp, struct kb_thread *t);

/* Frees t, which nobody can reach any more. The stack of a thread with a control block stays until
 * here: its pthread_t is the block's address. */
static inline void kbi_thread_dispose(struct kbi_vp *vp, struct kb_thread *t)
{
	if (t->stack && vp && kbi_likely(!t->user_stack))
		kbi_stack_put_promised(vp->stacks, t->stack);
	else if (t->stack)
		kbi_thread_put_elsewhere(vp, t);
	t->stack = NULL;
	kbi_descriptor_free(kbi_thread_cache(vp), t);
}

/* Returns true if the stack is kept until the descriptor is freed: the drop-in's pthread_t is the
 * block's address, and the end of a block in memory of the program's own takes a while. */
static inline bool kbi_thread_keeps_stack(const struct kb_thread *t)
{
	return t->own_tls && (t->posix || t->user_stack);
}

/* Gives back t's stack, which is free now; called on another stack. */
static inline void kbi_thread_put_stack(struct kbi_vp *vp, struct kb_thread *t)
{
	kbi_san_end(&t->san);
	if (!t->stack || kbi_thread_keeps_stack(t))
		return;
	if (kbi_likely(!t->user_stack))
		kbi_stack_put_promised(vp->stacks, t->stack);
	else
		kbi_stack_put(vp->stacks, t->stack);
	t->stack = NULL;
}

#endif
