/* sched/spin.h - a spin lock in a bit of a shared word. Callers: core/cell, sync. Calls os/sys. */
#ifndef KBI_SPIN_H
#define KBI_SPIN_H

#include "base/atom.h"

/* Internal spin lock for an object's wait queue (a bit or a word of the object): held for a few
 * tens of instructions, never across a switch, always inside np brackets. After some spinning it
 * yields the processor to the kernel (the holder's kernel thread may have been preempted). */
void kbi_spin_slow(a32 *word, uint32_t bit);
static inline void kbi_spin_lock_bit(a32 *word, uint32_t bit)
{
	/* acquire: pairs with the release in kbi_spin_unlock_bit */
	uint32_t old = a_load_rlx(word) & ~bit;

	if (kbi_likely(a_cas_acq(word, &old, old | bit)))
		return;
	kbi_spin_slow(word, bit);
}

static inline void kbi_spin_unlock_bit(a32 *word, uint32_t bit)
{
	/* release: pairs with the acquire in kbi_spin_lock_bit / kbi_spin_slow */
	__atomic_fetch_and(&word->v_, ~bit, __ATOMIC_RELEASE);
}

#endif
