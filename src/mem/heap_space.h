/* mem/heap_space.h - the heap's address space: one reserved region of units of 64 KiB. What the
 * heap knows of a unit lies beside the region, out of reach of a block's overflow: a tag word,
 * which free reads, and a record. Spans (consecutive units) are taken and given back here; above a
 * limit the pages of free spans are returned to the system.
 *
 * A unit's record holds its state. Arrows, all under the space's lock:
 *   BEYOND -> USED           taken past the frontier: its pages are made accessible there
 *   FREE_CLEAN, FREE_DIRTY -> USED    taken
 *   USED -> FREE_DIRTY       given back
 *   FREE_DIRTY -> FREE_CLEAN its pages were returned: they read as zeroes again
 * Free neighbours of one kind are one span, described by its first and last record. A USED span
 * belongs to its taker: an owner's slab (heap_slab) or a large block (heap_large).
 *
 * Callers: the heap's units. Never switches. Locks: the space's, innermost. */
#ifndef KBI_HEAP_SPACE_H
#define KBI_HEAP_SPACE_H

#include "base/atom.h"
#include "mem/heap_class.h"
#include "os/memory.h"

enum kbi_unit_state {
	KBI_UNIT_BEYOND,
	KBI_UNIT_USED,
	KBI_UNIT_FREE_CLEAN,
	KBI_UNIT_FREE_DIRTY,
};

enum { KBI_SLAB_WORDS = KBI_UNIT / KBI_HEAP_GRAIN / 64, KBI_MARK_WORDS = 2 * KBI_SLAB_WORDS };

/* The record of a unit. The first record of a span describes the span. */
struct kbi_slab {
	/* free spans: under the lock; slabs: the owner's list of a class's slabs with free blocks */
	struct kbi_slab *next, *prev;
	uint32_t units; /* of the span */
	uint32_t back;  /* this unit's position in the span: set in all units of a slab, and in a
			 * free span's last unit */
	uint8_t state;  /* enum kbi_unit_state */
	/* slabs: written by the owner only (statistics read them, too) */
	bool listed;
	uint16_t class;
	uint16_t fresh;  /* blocks from this number on were never given out */
	uint16_t n_free; /* bits set in free */
	uint16_t low;    /* words of free below this one are 0 */
	bool moved;      /* large blocks: its pages came from another span */
	uint64_t free[KBI_SLAB_WORDS]; /* bit i: block i (below fresh) is free in the slab */
};

/* A unit's tag: 0: no block begins here; KBI_TAG_LARGE: a large block begins here; else the unit is
 * in a slab: owner's number << KBI_TAG_SHIFT | offset of the class's bin in the owner. Written by
 * the owner of the slab. A correct free reads the tag after that write: the program's own
 * synchronisation has handed the block from the allocating thread to the freeing thread. */
enum { KBI_TAG_SHIFT = 12, KBI_TAG_LARGE = (1 << KBI_TAG_SHIFT) - 1 };

struct kbi_space {
	/* constant after kbi_space_setup; before that units is 0, so that no address is inside */
	uintptr_t base;
	size_t units;
	a32 *tag;
	struct kbi_slab *slab;
	/* hardened mode; first half of a unit's words: a bit for each block that the program has;
	 * second half: a bit for each block that the program has had since the slab was made */
	uint64_t *marks;
	bool marked; /* hardened mode is on */
	/* The region is mapped shared in several processes, all of it accessible, and no pages are
	 * moved. Written while a single kernel thread runs. */
	bool shared;
};
extern KBI_HIDDEN struct kbi_space kbi_space;

/* Reserves the region, once; any thread may call. Returns false if there is no address space.
 * Before it there are no blocks. */
bool kbi_space_setup(void);
/* Takes `units` consecutive units, the first at a multiple of `align` units (a power of two).
 * Returns the number of the first; ~0: no memory. *zero: the pages read as zeroes. The caller sets
 * the tags. */
size_t kbi_space_take(size_t units, size_t align, bool *zero);
/* Gives a span back. The caller has cleared its tags. */
void kbi_space_give(size_t unit, size_t units);
/* Gives back all units of the caller's span except the first `keep`. */
void kbi_space_cut(size_t unit, size_t keep);
/* Takes `more` units right behind the caller's span. Returns true if the span is now that much
 * longer. */
bool kbi_space_extend(size_t unit, size_t units, size_t more);
/* Returns pages of free spans beyond `keep` bytes to the system. Returns true if there were any. */
bool kbi_space_trim(size_t keep);
/* Sets the bytes of free pages above which they are returned without being asked for. */
void kbi_space_keep(size_t bytes);
/* Returns zeroed memory for the heap's own records, which is never freed; NULL: none. */
void *kbi_space_record(size_t bytes);

struct kbi_space_count {
	size_t frontier, clean, dirty, peak, records; /* bytes */
};
/* Fills c. */
void kbi_space_count(struct kbi_space_count *c);

/* Describes the region: its place, and its opened parts (where the region is not shared, only these
 * may be used). Returns false if there is no region. */
bool kbi_space_region(struct kbi_memory_region *r);

/* Take and release the space's lock around fork, so that no operation is half done in the child. */
void kbi_space_freeze(void);
void kbi_space_thaw(void);

/* Returns the number of the unit that p is in; at least kbi_space.units if p is outside. */
static inline size_t kbi_space_unit(const void *p)
{
	return ((uintptr_t)p - kbi_space.base) >> KBI_UNIT_SHIFT;
}

static inline void *kbi_space_at(size_t unit)
{
	return (void *)(kbi_space.base + (unit << KBI_UNIT_SHIFT));
}

/* Returns the first record of the slab or large block that p lies in; for a large block p must be
 * in its first unit. */
static inline struct kbi_slab *kbi_space_slab(const void *p)
{
	struct kbi_slab *s = &kbi_space.slab[kbi_space_unit(p)];

	return s - s->back;
}

static inline uint64_t *kbi_space_marks(const struct kbi_slab *s)
{
	return kbi_space.marks + (size_t)(s - kbi_space.slab) * KBI_MARK_WORDS;
}

#endif
