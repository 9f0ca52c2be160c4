/* mem/heap_large.h - blocks above 32 KiB, or aligned beyond 64 KiB: spans of whole units from the
 * common space. They belong to no owner. A freed block's span keeps its pages (heap_space) for the
 * next block. A block grows in place where possible; else its pages are moved, not copied.
 *
 * Callers: heap, heap_hard. Any thread. Locks: the space's, inside heap_space. Never switches. */
#ifndef KBI_HEAP_LARGE_H
#define KBI_HEAP_LARGE_H

#include "mem/heap_space.h"

/* Returns a block of at least `bytes` bytes at a multiple of align, a power of two. *zero: the
 * block reads as zeroes. NULL: no memory. */
void *kbi_large_take(size_t bytes, size_t align, bool *zero);
/* Frees the large block p. No other thread may use p during this or kbi_large_resize. */
void kbi_large_give(void *p);
/* Changes the block's length and returns its new address; NULL: no memory, the block is
 * unchanged. */
void *kbi_large_resize(void *p, size_t bytes);
/* Returns the length of the block's span, bytes. */
size_t kbi_large_bytes(const void *p);

/* Returns whether a large block begins at p. */
static inline bool kbi_large_is(const void *p)
{
	size_t unit = kbi_space_unit(p);

	return unit < kbi_space.units && !((uintptr_t)p & (KBI_UNIT - 1)) &&
	       a_load_rlx(&kbi_space.tag[unit]) == KBI_TAG_LARGE;
}

#endif
