/* core/cell.h - a message to a thread: the memory behind an event.
 * Callers: core/domain, core/wait, sync/event. Runs inside np brackets; the far slot has a spin
 * lock; never switches. */
#ifndef KBI_CELL_H
#define KBI_CELL_H

#include "core/descriptor.h"
#include "sched/spin.h"

/* A cell lies in memory that one thread owns. A sender leaves the value in one of three places,
 * then wakes the owner.
 *   - handed: in the cell, if the owner waits for just this cell on a domain that the sender
 *     holds. The owner has said so in `awaits`, and the sender clears that: a word of the line
 *     that a wake-up writes anyway, and no flag to look at, set and clear.
 *   - given: in the owner's descriptor (got), if the owner waits for something else on a domain
 *     that the sender holds, or if the value came by mail: so senders on other VPs keep the
 *     cell's line, which tells them where to send, and only the mail's line moves. One value at
 *     a time.
 *   - put: in the far slot, in all remaining cases. Its word is a spin lock (bit 1) and says
 *     whether it is full (bit 0).
 *
 * A value that is put is newer than a value that was given; no value is handed while a far value
 * waits that the owner has not seen. Model: model/cell.pml. */
struct kbi_cell {
	struct kbi_task *owner;
	a64 value;
	uint32_t unused;
	a32 far;
	a64 far_value;
	uint32_t home; /* constant: the VP that the owner is bound to, plus 1; 0: not bound */
	aptr rests;    /* the owner's stack when it last waited; a hint, for kbi_cell_fetch */
};
enum { KBI_CELL_FULL = 1, KBI_CELL_LOCK = 2 };

/* Notes that the owner is about to wait with its frame at `at`. Writes only if this has changed,
 * so that a sender on another VP keeps the line. */
static inline void kbi_cell_rest(struct kbi_cell *c, void *at)
{
	if (kbi_unlikely(!a_is_rlx(&c->rests, at)))
		a_store_rlx(&c->rests, at);
}

/* Prefetches the owner's stack for a sender. The owner's descriptor, fetched at the same time,
 * would tell the address later. */
static inline void kbi_cell_fetch(const struct kbi_cell *c)
{
	uintptr_t at = (uintptr_t)a_load_rlx(&c->rests); /* 0: the owner has not waited yet */

	__builtin_prefetch((void *)at);
	__builtin_prefetch((void *)(at - KBI_CACHE_LINE));
}

/* Hands the value over. Inside np brackets; t, the owner, is WAITING on a domain that the caller
 * holds, and t->awaits == c. */
static inline void kbi_cell_hand(struct kbi_cell *c, struct kbi_task *t, uint64_t value)
{
	a_store_rlx(&c->value, value);
	t->awaits = NULL;
}

/* Gives the value to t's descriptor. Inside np brackets; t, the owner, is WAITING on a domain
 * that the caller holds or runs on the caller's VP. Does not touch the cell, which its owner may
 * have given up by now. Returns false if t has a message already. */
static inline bool kbi_cell_give(struct kbi_cell *c, struct kbi_task *t, uint64_t value)
{
	if (kbi_task_is(t, KBI_TASK_MAIL))
		return false;
	kbi_task_set(t, KBI_TASK_MAIL);
	kbi_thread_of(t)->got = c;
	kbi_thread_of(t)->got_value = value;
	return true;
}

/* Puts the value into the far slot. Any kernel thread, inside np brackets. */
static inline void kbi_cell_put(struct kbi_cell *c, uint64_t value)
{
	kbi_spin_lock_bit(&c->far, KBI_CELL_LOCK);
	a_store_rlx(&c->far_value, value);
	/* release: pairs with the acquire of the next kbi_spin_lock_bit of `far` */
	a_store_rel(&c->far, KBI_CELL_FULL);
}

#endif
