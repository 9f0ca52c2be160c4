/* mem/heap_guard.h - guarded blocks (option heap_guard): about one of N allocations is chosen and
 * gets pages of its own between pages that cannot be touched. An access behind the block's end
 * faults at once, and so does each access after the block was freed, until some hundred further
 * blocks have been chosen. A message names the fault. Where virtual processors are processes no
 * block is chosen, because its pages would be guarded in a single process only.
 *
 * Callers: the heap's units, posix/malloc. Takes no lock, never switches. Any thread;
 * kbi_guard_explain also in signal handlers. */
#ifndef KBI_HEAP_GUARD_H
#define KBI_HEAP_GUARD_H

#include "base/atom.h"
#include "mem/heap_class.h"

enum { KBI_GUARD_SLOTS = 256 };

struct kbi_guard {
	/* constant after kbi_guard_setup; before that bytes is 0, so that no address is inside */
	uintptr_t base;
	size_t bytes;
	uint32_t every; /* average distance of chosen blocks; 0: none is chosen */
};
extern KBI_HIDDEN struct kbi_guard kbi_guard;

/* Chooses one block in `every` from now on. Called once, before the first block. */
void kbi_guard_setup(uint32_t every);
/* Chooses no block any more. Chosen blocks stay. */
void kbi_guard_stop(void);
/* Returns the number of allocations up to and including the next chosen block: random, `every` on
 * the average. */
uint32_t kbi_guard_distance(void);
/* Returns a guarded block; NULL: n is too long, or no pages are left. caller: its address appears
 * in reports. */
void *kbi_guard_take(size_t align, size_t n, const void *caller);
/* Frees a guarded block. Aborts with a message if p is no block, was freed before, or was written
 * behind its end. */
void kbi_guard_give(void *p, const void *caller);
/* Returns the length that the program asked for; aborts as kbi_guard_give. */
size_t kbi_guard_bytes(const void *p, const void *caller);
/* Reports a fault at this address if it is in a guarded block's part of memory.
 * Async-signal-safe. */
void kbi_guard_explain(uintptr_t at);
/* Installs a handler that reports faults, if the program has none. */
void kbi_guard_watch(void);

/* Returns whether p lies in the memory of guarded blocks. */
static inline bool kbi_guard_has(const void *p)
{
	return (uintptr_t)p - kbi_guard.base < kbi_guard.bytes;
}

#endif
