/* core/cell.h - a message to a thread: the memory behind an event. Callers: core/domain, core/wait, sync/event. */
#ifndef KBI_CELL_H
#define KBI_CELL_H

#include "core/spin.h"
#include "core/task.h"

/* A cell in memory that one thread owns: who delivers stores the value and sets the flag, then wakes the owner,
 * which clears the flag when it takes the value. From another VP the value travels in the same cache line as
 * the wake-up. The owner clears the flag by a plain store, so near values are stored only by who knows that
 * the owner waits on the domain it holds; all others use the far slot, whose word is a spin lock (bit 1) and
 * the flag (bit 0). A near value is not stored over a far one, so if both are there the far one is newer.
 * A value that came by mail to a waiter is not stored here but in the owner's descriptor (got), so that senders on
 * other VPs keep this line, which tells them where to send, and only the mail's line moves.
 * Model: model/cell.pml. */
struct kbi_cell {
	struct kbi_task *owner;
	a64 value;
	a32 flag;
	a32 far;
	a64 far_value;
	uint32_t home; /* constant: VP the owner is bound to, plus 1; 0: not bound */
};
enum { KBI_CELL_FULL = 1, KBI_CELL_LOCK = 2 };

/* near: the owner's state is WAITING on a domain that the caller holds. Inside np brackets. */
static inline void kbi_cell_put(struct kbi_cell *c, uint64_t value, bool near)
{
	if (kbi_likely(near && !a_load_rlx(&c->far))) {
		a_store_rlx(&c->value, value);
		/* release: partner is the acquire in the owner's look at the flag */
		a_store_rel(&c->flag, 1);
		return;
	}
	kbi_spin_lock_bit(&c->far, KBI_CELL_LOCK);
	a_store_rlx(&c->far_value, value);
	/* release: partner is the acquire of the next to lock it */
	a_store_rel(&c->far, KBI_CELL_FULL);
}

#endif
