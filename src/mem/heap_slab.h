/* mem/heap_slab.h - slabs: spans of equal blocks, of one class and one owner. A bitmap in the
 * slab's record, not in the blocks, tells which blocks are free. So nothing that the program writes
 * to freed memory can mislead the heap, and a double free is detected when the block comes back
 * here. Blocks are given out in the order of their addresses.
 *
 * Callers: heap_owner. Locks: none of its own. Never switches. Every function is called by the
 * slab's owner, or, for an orphan's slab (heap_owner.h), by the holder of life's lock. */
#ifndef KBI_HEAP_SLAB_H
#define KBI_HEAP_SLAB_H

#include "mem/heap_space.h"

/* constant after kbi_slab_setup */
extern KBI_HIDDEN struct kbi_class kbi_slab_class[KBI_HEAP_CLASSES];
void kbi_slab_setup(void);

/* Makes a slab of class k whose units have the tag `tag`; NULL: no memory. */
struct kbi_slab *kbi_slab_make(unsigned k, uint32_t tag);
/* Takes up to n blocks of s, stores them with the lowest address last, and returns their number. */
unsigned kbi_slab_take(struct kbi_slab *s, void **blocks, unsigned n);
/* Frees a block. Aborts if no block begins there, or it is free already. */
void kbi_slab_put(struct kbi_slab *s, void *block);
/* Gives the slab's units back; all its blocks must be free. */
void kbi_slab_end(struct kbi_slab *s);

/* Returns the number of the block that p is in; *exact: p is its beginning. */
static inline uint32_t kbi_slab_index(const struct kbi_slab *s, const void *p, bool *exact)
{
	uint64_t offset = (uintptr_t)p - (uintptr_t)kbi_space_at((size_t)(s - kbi_space.slab));
	const struct kbi_class *c = &kbi_slab_class[s->class];
	uint32_t i = (uint32_t)(offset * c->reciprocal >> KBI_RECIPROCAL_SHIFT);

	*exact = (uint64_t)i * c->size == offset;
	return i;
}

/* Returns whether the slab has a block to take. */
static inline bool kbi_slab_has_free(const struct kbi_slab *s)
{
	return s->n_free || s->fresh < kbi_slab_class[s->class].blocks;
}

/* Returns whether no block of the slab is in use. */
static inline bool kbi_slab_is_unused(const struct kbi_slab *s)
{
	return s->n_free == s->fresh;
}

#endif
