/* mem/heap_space.h - the heap's address space: one reserved region of units of 64 KiB, and beside it, out of reach of a
 * block's overflow, all that is to know of a unit: a tag word, which free reads, and a record. Spans of units are given
 * out and taken back here; pages of free ones are returned to the system above a limit.
 *
 * A unit's record says what it is (states below). Arrows, all under the space's lock:
 *   BEYOND -> USED           taken past the frontier: its pages are made accessible there
 *   FREE_CLEAN, FREE_DIRTY -> USED    taken; neighbours of one kind are one span, told by its first and last record
 *   USED -> FREE_DIRTY       given back
 *   FREE_DIRTY -> FREE_CLEAN its pages were returned: they read as zeroes again
 * A USED span belongs to who took it: an owner's slab (heap_slab) or a large block (heap_large).
 * Callers: the heap's units. Calls sys. Never switches. Locks: its own, innermost. */
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

/* The record of a unit. Of a span the first one counts. */
struct kbi_slab {
	struct kbi_slab *next, *prev; /* free spans: under the lock; slabs: the owner's, of a class, with free blocks */
	uint32_t units;               /* of the span */
	uint32_t back;                /* this unit's place in it: set in all units of a slab, and in a free span's last */
	uint8_t state;                /* enum kbi_unit_state */
	/* slabs: owner only (statistics peep) */
	bool listed;
	uint16_t class;
	uint16_t fresh;  /* blocks from here on were never given out */
	uint16_t n_free; /* bits in free */
	uint16_t low;    /* no bit in words below */
	bool moved;      /* large: its pages came from elsewhere */
	uint64_t free[KBI_SLAB_WORDS]; /* a bit for each block below fresh that lies here and nowhere else */
};

/* Tag of a unit: 0 nothing begins here, KBI_TAG_LARGE a large block does, else it is in a slab:
 * owner's number << KBI_TAG_SHIFT | offset of the class's bin in the owner. Written by the owner; a free that is not
 * wild is ordered after that by the block's way to it. */
enum { KBI_TAG_SHIFT = 12, KBI_TAG_LARGE = (1 << KBI_TAG_SHIFT) - 1 };

struct kbi_space {
	/* constant after kbi_space_setup; before, units is 0 and no address is in it */
	uintptr_t base;
	size_t units;
	a32 *tag;
	struct kbi_slab *slab;
	/* hardened mode. Half of a unit's: a bit for each block that the program has; the other half: a bit for each that it
	 * has had since the slab was made */
	uint64_t *marks;
	bool marked; /* hardened mode */
	/* the region is mapped shared, in several processes, all of it accessible: no pages are moved. Written while one kernel
	 * thread runs */
	bool shared;
};
extern KBI_HIDDEN struct kbi_space kbi_space;

/* Idempotent, any thread; before it there are no blocks. False: no address space. */
bool kbi_space_setup(void);
/* `units` of them in a row, the first at a multiple of `align` units (a power of two); ~0: no memory. *zero: its pages
 * read as zeroes. The caller sets tags. */
size_t kbi_space_take(size_t units, size_t align, bool *zero);
/* They become free; tags are 0 already. */
void kbi_space_give(size_t unit, size_t units);
/* Of a span of the caller's only the first `keep` units stay taken. */
void kbi_space_cut(size_t unit, size_t keep);
/* Takes `more` units right behind a span of the caller's: true, and the span is that much longer. */
bool kbi_space_extend(size_t unit, size_t units, size_t more);
/* Free pages beyond `keep` bytes go back to the system: true if any did. */
bool kbi_space_trim(size_t keep);
/* What is kept before that happens by itself; bytes. */
void kbi_space_keep(size_t bytes);
/* Memory for the heap's own records, zeroed, for ever; NULL. */
void *kbi_space_record(size_t bytes);

struct kbi_space_count {
	size_t frontier, clean, dirty, peak, records; /* bytes */
};
void kbi_space_count(struct kbi_space_count *c);

/* Where the region lies, and what of it has been opened: so much may be used where it is not shared. */
bool kbi_space_region(struct kbi_memory_region *r);

/* Around fork: nothing is half done in the child. */
void kbi_space_freeze(void);
void kbi_space_thaw(void);

static inline size_t kbi_space_unit(const void *p)
{
	return ((uintptr_t)p - kbi_space.base) >> KBI_UNIT_SHIFT;
}

static inline void *kbi_space_at(size_t unit)
{
	return (void *)(kbi_space.base + (unit << KBI_UNIT_SHIFT));
}

/* What p lies in, or its first unit. */
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
