/* mem/heap_guard.h - blocks with pages of their own between pages that cannot be touched (option heap_guard): one in so
 * many that are taken. An access behind the block's end faults at once, and so does each access after it was freed, until
 * some hundred others have been chosen; the fault is told with what it was.
 * Where virtual processors are processes no block is chosen: pages would be guarded in one process only.
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

/* One block in `every` from now on. Once, before the first block. */
void kbi_guard_setup(uint32_t every);
/* None is chosen any more. Those that there are stay. */
void kbi_guard_stop(void);
/* How many blocks are taken until the next is chosen, that one included: random, `every` on the average. */
uint32_t kbi_guard_distance(void);
/* NULL: it is too long, or no pages are left. caller: for the report. */
void *kbi_guard_take(size_t align, size_t n, const void *caller);
/* Aborts, with a message, if p is no block, was freed before, or was written right behind its end. */
void kbi_guard_give(void *p, const void *caller);
/* What was asked for; aborts likewise. */
size_t kbi_guard_bytes(const void *p, const void *caller);
/* A fault at that address: is told, if it is one of such a block. */
void kbi_guard_explain(uintptr_t at);
/* Faults are told by a handler of our own, if the program has none. */
void kbi_guard_watch(void);

/* Is it in the part where such blocks are? */
static inline bool kbi_guard_has(const void *p)
{
	return (uintptr_t)p - kbi_guard.base < kbi_guard.bytes;
}

#endif
