/* base/ring.h - indices of a ring of slots with a single producer and a single consumer: two
 * free-running words. The user of a ring places the words and the slots, so that the tails of
 * several rings may share the line that their consumer polls. Each side keeps its own word in
 * private memory, too: a side never reads back a word that only it writes.
 * The slot of index i is i % size; size is a power of two.
 * No read-modify-write, no lock; wait-free.
 * Callers: sched/waiver, sched/link.
 * The producer's functions may run in parallel with the consumer's; two producers or two consumers
 * may not. */
#ifndef KBI_RING_H
#define KBI_RING_H

#include "base/atom.h"

/* Consumer, which has taken `taken` slots so far: returns the number of filled slots. acquire:
 * pairs with kbi_ring_publish; the contents of the slots are visible. */
static inline uint32_t kbi_ring_filled(const a32 *tail, uint32_t taken)
{
	return a_load_acq(tail) - taken;
}

/* Consumer: the slots below `taken` have been read and may be filled again. release: pairs with the
 * acquire in kbi_ring_room; our reads are done before the producer writes. */
static inline void kbi_ring_release(a32 *head, uint32_t taken)
{
	a_store_rel(head, taken);
}

/* Producer, which has put `put` slots so far: returns the number of free slots out of `size`.
 * acquire: pairs with kbi_ring_release; the consumer has read the free slots. */
static inline uint32_t kbi_ring_room(const a32 *head, uint32_t put, uint32_t size)
{
	return size - (put - a_load_acq(head));
}

/* Producer: the slots below `put` are filled. release: pairs with the acquire in
 * kbi_ring_filled. */
static inline void kbi_ring_publish(a32 *tail, uint32_t put)
{
	a_store_rel(tail, put);
}

#endif
