/* mem/heap_slab.h - slabs: spans of equal blocks, of one class and one owner. A bitmap in the slab's record, not the
 * blocks themselves, says which are free, so nothing that the program writes to freed memory can mislead the heap, and a
 * block that is free twice is seen when it comes back here. Blocks are given out in the order of their addresses.
 * Callers: heap_owner. Calls heap_space. Every function: the slab's owner only, or who holds an orphaned one. */
#ifndef KBI_HEAP_SLAB_H
#define KBI_HEAP_SLAB_H

#include "mem/heap_space.h"

extern KBI_HIDDEN struct kbi_class kbi_slab_class[KBI_HEAP_CLASSES]; /* constant after kbi_slab_setup */
void kbi_slab_setup(void);

/* A new slab of class k whose units bear `tag`; NULL: no memory. */
struct kbi_slab *kbi_slab_make(unsigned k, uint32_t tag);
/* Up to n blocks of s, the lowest last; how many. */
unsigned kbi_slab_take(struct kbi_slab *s, void **blocks, unsigned n);
/* A block that nobody has any more. Aborts if it is no block, or is free already. */
void kbi_slab_put(struct kbi_slab *s, void *block);
/* All its blocks are free: its units go back. */
void kbi_slab_end(struct kbi_slab *s);

/* Number of the block that p is in, and whether p is its beginning. */
static inline uint32_t kbi_slab_index(const struct kbi_slab *s, const void *p, bool *exact)
{
	uint64_t offset = (uintptr_t)p - (uintptr_t)kbi_space_at((size_t)(s - kbi_space.slab));
	const struct kbi_class *c = &kbi_slab_class[s->class];
	uint32_t i = (uint32_t)(offset * c->reciprocal >> KBI_RECIPROCAL_SHIFT);

	*exact = (uint64_t)i * c->size == offset;
	return i;
}

static inline bool kbi_slab_has_free(const struct kbi_slab *s)
{
	return s->n_free || s->fresh < kbi_slab_class[s->class].blocks;
}

static inline bool kbi_slab_is_unused(const struct kbi_slab *s)
{
	return s->n_free == s->fresh;
}

#endif
