/* mem/heap_guard.h - blocks with pages of their own between pages that cannot be touched (option heap_guard): of N blocks
 * that are taken, about one. An access behind the block's end faults at once, and so does each access after it was freed,
 * until some hundred further blocks have been chosen; a message names the fault.
 * Where virtual processors are processes no block is chosen: pages would be guarded in a single process.
 * Callers: the heap's units, posix/malloc. Calls sys. Any thread; kbi_guard_explain also in signal handlers. */
#ifndef KBI_HEAP_GUARD_H
#define KBI_HEAP_GUARD_H

#include "base/atom.h"
#include "mem/heap_class.h"

enum { KBI_GUARD_SLOTS = 256 };

struct kbi_guard {
	/* constant after kbi_guard_setup; before, bytes is 0 and no address is in it */
	uintptr_t base;
	size_t bytes;
	uint32_t every; /* 0: none is chosen */
};
extern KBI_HIDDEN struct kbi_guard kbi_guard;

/* A block in `every` from now on. Once, before the first block. */
void kbi_guard_setup(uint32_t every);
/* No block is chosen any more. Chosen blocks stay. */
void kbi_guard_stop(void);
/* How many blocks are taken until the next is chosen, the chosen block included: random, `every` on the average. */
uint32_t kbi_guard_distance(void);
/* NULL: it is too long, or no pages are left. caller: for the report. */
void *kbi_guard_take(size_t align, size_t n, const void *caller);
/* Aborts, with a message, if p is no block, was freed before, or was written right behind its end. */
void kbi_guard_give(void *p, const void *caller);
/* The length that was asked for; aborts likewise. */
size_t kbi_guard_bytes(const void *p, const void *caller);
/* A fault at that address: is told, if such a block is there. */
void kbi_guard_explain(uintptr_t at);
/* Faults are told by a handler of our own, if the program has none. */
void kbi_guard_watch(void);

/* Is it in the part where such blocks are? */
static inline bool kbi_guard_has(const void *p)
{
	return (uintptr_t)p - kbi_guard.base < kbi_guard.bytes;
}

#endif
