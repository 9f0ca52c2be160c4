/* mem/heap.h - the heap: blocks of any size for any thread; malloc and its family without libc's
 * names and errno (posix/malloc adds these).
 *
 * A small block (heap_class) comes from the bin of the calling kernel thread's owner and returns
 * there, without an atomic operation and without being touched: some ten instructions each, inline
 * below. heap.c handles all remaining cases.
 *
 * Callers: posix/malloc, tests. Any thread, also before main and after exit; not signal handlers.
 * Locks: those of heap_owner and heap_space, inside these. Never switches. NULL from a take: no
 * memory. */
#ifndef KBI_MEM_HEAP_H
#define KBI_MEM_HEAP_H

#include "mem/heap_owner.h"

/* Reads the options heap, heap_stats and heap_guard, once. The first allocation calls it, too. */
void kbi_heap_start(void);
/* Takes a block that the inline path cannot take. Sets errno with NULL: no memory, or n too large.
 * Its return address is used in messages: the address in malloc's caller if malloc ends with a jump
 * to here. */
void *kbi_heap_take_slow(size_t n);
/* Takes a small block whose bin has nothing to take: first tries the blocks that were given back to
 * the bin. Return address as for kbi_heap_take_slow. */
void *kbi_heap_take_empty(size_t n, struct kbi_bin *b);
/* The functions below take the return address for messages in `caller`. */
void *kbi_heap_take_for(size_t n, const void *caller);
void *kbi_heap_take_aligned(size_t align, size_t n, const void *caller);
void *kbi_heap_take_zeroed(size_t n, const void *caller);
void *kbi_heap_resize(void *p, size_t n, const void *caller);
/* Free a block that does not go to one of the caller's bins; NULL: do nothing. Abort if there is no
 * block at p. */
void kbi_heap_give_slow(void *p);
void kbi_heap_give_for(void *p, const void *caller);
/* Frees a block of o's own whose bin (an offset in o) is full. */
void kbi_heap_give_full(struct kbi_owner *o, uint32_t bin, void *p);
/* Returns the bytes that may be used at p; 0 for NULL. */
size_t kbi_heap_bytes(const void *p, const void *caller);
/* Returns free memory beyond `keep` bytes to the system. Returns true if there was any. */
bool kbi_heap_trim(size_t keep);

static inline struct kbi_bin *kbi_heap_bin(struct kbi_owner *o, size_t offset)
{
	return (struct kbi_bin *)((char *)o + offset);
}

static inline void *kbi_heap_take(size_t n)
{
	/* 0 if n is 0, and if the sum overflows */
	size_t grains = (n + KBI_HEAP_GRAIN - 1) / KBI_HEAP_GRAIN;
	struct kbi_bin *b;
	void **top, *p;

	if (kbi_unlikely(grains >= kbi_countof(kbi_owner_bin_for)))
		return kbi_heap_take_slow(n);
	b = kbi_heap_bin(kbi_owner_self, __atomic_load_n(&kbi_owner_bin_for[grains], __ATOMIC_RELAXED));
	top = b->take;
	p = *top;
	if (kbi_unlikely(!p))
		return kbi_heap_take_empty(n, b);
	b->take = top - 1;
	return p;
}

static inline void kbi_heap_give(void *p)
{
	struct kbi_owner *o = kbi_owner_self;
	size_t unit = kbi_space_unit(p);
	struct kbi_bin *b;
	uint32_t bin;
	void **top;

	if (kbi_unlikely(unit >= kbi_space.units)) {
		kbi_heap_give_slow(p);
		return;
	}
	bin = a_load_rlx(&kbi_space.tag[unit]) ^ o->key;
	if (kbi_unlikely(bin >= sizeof o->bin)) {
		kbi_heap_give_slow(p);
		return;
	}
	b = kbi_heap_bin(o, bin);
	top = b->give;
	if (kbi_unlikely(top == b->give_high)) {
		kbi_heap_give_full(o, bin, p);
		return;
	}
	top[1] = p;
	b->give = top + 1;
}

#endif
