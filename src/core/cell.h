/* core/cell.h - a message to a thread: the memory behind an event. Callers: core/domain, core/wait, sync/event. */
#ifndef KBI_CELL_H
#define KBI_CELL_H

#include "core/descriptor.h"
#include "core/spin.h"

/* A cell in memory that one thread owns: who delivers leaves the value in one of three places, then wakes the owner.
 *  - handed: in the cell, where the owner waits for just this cell on a domain that the caller holds. The owner has said
 *    so in `awaits`, and who hands clears that: a word of the line that a wake-up writes anyway, and no flag to be
 *    looked at, set and cleared.
 *  - given: in the owner's descriptor (got), where it waits for something else on a domain that the caller holds, or the
 *    value came by mail: so senders on other VPs keep the cell's line, which tells them where to send, and only the
 *    mail's line moves. One at a time.
 *  - put: the far slot, for all others. Its word is a spin lock (bit 1) and says whether it is full (bit 0). What is
 *    put is newer than what was given; nothing is handed while a far one waits that the owner has not seen.
 * Model: model/cell.pml. */
struct kbi_cell {
	struct kbi_task *owner;
	a64 value;
	uint32_t unused;
	a32 far;
	a64 far_value;
	uint32_t home; /* constant: VP the owner is bound to, plus 1; 0: not bound */
	aptr rests;    /* the owner's stack when it last waited; a hint, for kbi_cell_fetch */
};
enum { KBI_CELL_FULL = 1, KBI_CELL_LOCK = 2 };

/* The owner is about to wait with its frame at `at`. Written only when it has changed: a sender on another VP keeps the
 * line. */
static inline void kbi_cell_rest(struct kbi_cell *c, void *at)
{
	if (kbi_unlikely(!a_is_rlx(&c->rests, at)))
		a_store_rlx(&c->rests, at);
}

/* Who sends fetches the owner's stack ahead, together with the owner's descriptor, which would tell it later. */
static inline void kbi_cell_fetch(const struct kbi_cell *c)
{
	uintptr_t at = (uintptr_t)a_load_rlx(&c->rests); /* 0: it has not waited yet */

	__builtin_prefetch((void *)at);
	__builtin_prefetch((void *)(at - KBI_CACHE_LINE));
}

/* These two inside np brackets; t, the owner, is WAITING on a domain that the caller holds. Only if t->awaits == c. */
static inline void kbi_cell_hand(struct kbi_cell *c, struct kbi_task *t, uint64_t value)
{
	a_store_rlx(&c->value, value);
	t->awaits = NULL;
}

/* Or t runs on the caller's VP. The cell itself is not touched, for its owner may have given it up by now.
 * False: t has a message already. */
static inline bool kbi_cell_give(struct kbi_cell *c, struct kbi_task *t, uint64_t value)
{
	if (kbi_task_is(t, KBI_TASK_MAIL))
		return false;
	kbi_task_set(t, KBI_TASK_MAIL);
	kbi_thread_of(t)->got = c;
	kbi_thread_of(t)->got_value = value;
	return true;
}

/* Anybody, inside np brackets. */
static inline void kbi_cell_put(struct kbi_cell *c, uint64_t value)
{
	kbi_spin_lock_bit(&c->far, KBI_CELL_LOCK);
	a_store_rlx(&c->far_value, value);
	/* release: partner is the acquire of the next to lock it */
	a_store_rel(&c->far, KBI_CELL_FULL);
}

#endif
