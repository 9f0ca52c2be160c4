/* io/slot.h - a place for each descriptor's number, with the queue of threads that wait for it.
 * Slots are made as numbers come up and never go away. The lock is held for one call of the kernel at most, inside np
 * brackets, never across a switch. Callers: engine, ready. */
#ifndef KBI_SLOT_H
#define KBI_SLOT_H

#include "core/spin.h"

struct kbi_ready;

struct kbi_slot {
	a32 lock;
	uint32_t known; /* under lock: the engine has been told of this number before; a guess */
	/* under lock; others peep at first */
	aptr first;
	struct kbi_ready *last;
};

/* NULL: no such number is possible, or no memory. */
struct kbi_slot *kbi_slot_make(int fd);
/* NULL: nobody has waited for such a number yet. */
struct kbi_slot *kbi_slot_find(int fd);
/* Numbers that slots were made for are below it. */
int kbi_slot_limit(void);

static inline void kbi_slot_lock(struct kbi_slot *s)
{
	kbi_spin_lock_bit(&s->lock, 1);
}

static inline void kbi_slot_unlock(struct kbi_slot *s)
{
	kbi_spin_unlock_bit(&s->lock, 1);
}

#endif
