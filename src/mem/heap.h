/* mem/heap.h - the heap: blocks of any size for any thread. malloc and its family in the ways they may be asked for;
 * posix/malloc puts libc's names on them, and errno.
 *
 * A small block (heap_class) comes from the calling kernel thread's own bin and goes back there, with no atomic
 * operation and without being touched: some ten instructions each, here in line. What that cannot do is in heap.c.
 * Callers: posix/malloc, tests. Calls heap_owner, heap_large, heap_hard. Any thread, also before main and after exit;
 * not signal handlers. Never switches. */
#ifndef KBI_MEM_HEAP_H
#define KBI_MEM_HEAP_H

#include "mem/heap_owner.h"

/* Reads the options heap and heap_stats; idempotent. The first block does it, too. */
void kbi_heap_start(void);
/* What has no block of the right class in the bin. NULL and errno: no memory, or too much. Its return address is for
 * messages: that of malloc's caller, if malloc ends with a jump here. */
void *kbi_heap_take_slow(size_t n);
/* The same for a small block whose bin has nothing to take: what has been given back to it is taken again. */
void *kbi_heap_take_empty(size_t n, struct kbi_bin *b);
/* `caller`: the same said; NULL: no memory. */
void *kbi_heap_take_for(size_t n, const void *caller);
void *kbi_heap_take_aligned(size_t align, size_t n, const void *caller);
void *kbi_heap_take_zeroed(size_t n, const void *caller);
void *kbi_heap_resize(void *p, size_t n, const void *caller);
/* A block that does not go on one of the caller's bins; NULL: nothing happens. Aborts if there is no such block. */
void kbi_heap_give_slow(void *p);
void kbi_heap_give_for(void *p, const void *caller);
void kbi_heap_give_full(struct kbi_owner *o, uint32_t bin, void *p);
/* Bytes that p may be used for; 0 for NULL. */
size_t kbi_heap_bytes(const void *p, const void *caller);
/* Returns to the system what it can, but for `keep` bytes: true if there was something. */
bool kbi_heap_trim(size_t keep);

static inline struct kbi_bin *kbi_heap_bin(struct kbi_owner *o, size_t offset)
{
	return (struct kbi_bin *)((char *)o + offset);
}

static inline void *kbi_heap_take(size_t n)
{
	size_t grains = (n + KBI_HEAP_GRAIN - 1) / KBI_HEAP_GRAIN; /* 0 for 0, and if it overflows */
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
