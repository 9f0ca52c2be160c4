/* base/ring.h - indices of a ring of slots with one producer and one consumer: two free-running words.
 * Who uses it places the words and the slots (so that the tails of several rings may share the line their
 * consumer polls) and keeps its own word in private memory too: a side never reads back what it alone writes.
 * Slot of index i: i % size, size a power of two. No read-modify-write, no lock, wait-free.
 * May run in parallel: the producer's functions with the consumer's. Never: two producers, two consumers. */
#ifndef KBI_RING_H
#define KBI_RING_H

#include "base/atom.h"

/* Consumer, which has taken `taken` so far: how many slots are filled.
 * acquire: partner is kbi_ring_publish; what was written into the slots is seen. */
static inline uint32_t kbi_ring_filled(const a32 *tail, uint32_t taken)
{
	return a_load_acq(tail) - taken;
}

/* Consumer: the slots below `taken` have been read and may be filled again.
 * release: partner is the acquire in kbi_ring_room; our reads are done before the producer writes. */
static inline void kbi_ring_release(a32 *head, uint32_t taken)
{
	a_store_rel(head, taken);
}

/* Producer, which has put `put` so far: how many of the `size` slots are free. */
static inline uint32_t kbi_ring_room(const a32 *head, uint32_t put, uint32_t size)
{
	return size - (put - a_load_acq(head));
}

/* Producer: the slots below `put` are filled. release: partner is the acquire in kbi_ring_filled. */
static inline void kbi_ring_publish(a32 *tail, uint32_t put)
{
	a_store_rel(tail, put);
}

#endif
