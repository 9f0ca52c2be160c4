/* core/thread_priv.h - for core/thread*: what `join` of a thread holds beside a joiner (thread.c says what it means), and
 * giving back what a thread has. Inside np brackets, no locks, never switches. */
#ifndef KBI_THREAD_PRIV_H
#define KBI_THREAD_PRIV_H

#include "core/vp.h"

/* odd: it has ended by itself */
#define KBI_JOIN_ENDED ((void *)1)
#define KBI_JOIN_DETACHED ((void *)2)
#define KBI_JOIN_GIVEN ((void *)3)
#define KBI_JOIN_LOST ((void *)4) /* by a crash */

/* vp: where the caller runs, NULL: on none. */
static inline struct kbi_descriptor_cache *kbi_thread_cache(struct kbi_vp *vp)
{
	return vp ? &vp->threads : NULL;
}

/* t's stack is the program's own, or the caller runs on no VP. */
void kbi_thread_put_elsewhere(struct kbi_vp *vp, struct kb_thread *t);

/* Nobody can reach t any more. The stack of a thread with a control block stays until here: its pthread_t is
 * the block's address. */
static inline void kbi_thread_dispose(struct kbi_vp *vp, struct kb_thread *t)
{
	if (t->stack && vp && kbi_likely(!t->user_stack))
		kbi_stack_put_promised(vp->stacks, t->stack);
	else if (t->stack)
		kbi_thread_put_elsewhere(vp, t);
	t->stack = NULL;
	kbi_descriptor_free(kbi_thread_cache(vp), t);
}

/* Until the descriptor is freed: the drop-in's pthread_t is the block's address, and the end of a block in memory of the
 * program's own takes a while. */
static inline bool kbi_thread_keeps_stack(const struct kb_thread *t)
{
	return t->own_tls && (t->posix || t->user_stack);
}

/* On another stack than t's, which is free now. */
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
