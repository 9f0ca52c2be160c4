/* mem/heap_large.h - blocks above 32 KiB, or aligned beyond 64 KiB: spans of whole units from the common space. They belong
 * to nobody; freed ones wait there with their pages (heap_space) for the next. They grow in place where they can, else
 * their pages are moved, not copied.
 * Callers: heap. Calls heap_space. Any thread. */
#ifndef KBI_HEAP_LARGE_H
#define KBI_HEAP_LARGE_H

#include "mem/heap_space.h"

/* align: a power of two. *zero: the block reads as zeroes. NULL: no memory. */
void *kbi_large_take(size_t bytes, size_t align, bool *zero);
/* p is a large block, and the caller's last word on it; so for resize. */
void kbi_large_give(void *p);
/* Another length, perhaps elsewhere; NULL: no memory, the block is as before. */
void *kbi_large_resize(void *p, size_t bytes);
size_t kbi_large_bytes(const void *p);

static inline bool kbi_large_is(const void *p)
{
	size_t unit = kbi_space_unit(p);

	return unit < kbi_space.units && !((uintptr_t)p & (KBI_UNIT - 1)) &&
	       a_load_rlx(&kbi_space.tag[unit]) == KBI_TAG_LARGE;
}

#endif
