/* mem/heap_class.h - the size classes of blocks: steps of 16 bytes to 256 bytes, then eight steps
 * in each doubling to 32 KiB. So a block is at most 12 %, or 15 bytes, longer than the program
 * asked for. A larger block is a span of its own (heap_large).
 *
 * The blocks of class k lie side by side in slabs of 1 to 8 units of 64 KiB. Blocks of 2^a * m
 * bytes lie at multiples of 2^a. So an aligned block needs only the choice of a suitable class.
 *
 * Callers: the heap's units. Constant after kbi_slab_setup. */
#ifndef KBI_HEAP_CLASS_H
#define KBI_HEAP_CLASS_H

#include "base/base.h"

enum {
	KBI_HEAP_GRAIN = 16,
	KBI_HEAP_FINE = 256,       /* up to here in steps of the grain */
	KBI_HEAP_FINE_LOG = 8,
	KBI_HEAP_LOOKED_UP = 2048, /* up to here a table gives the class */
	KBI_HEAP_SMALL = 32768,    /* the largest class */
	KBI_HEAP_FINE_CLASSES = KBI_HEAP_FINE / KBI_HEAP_GRAIN,
	/* 0 is no class: its bin is always empty */
	KBI_HEAP_CLASSES = 1 + KBI_HEAP_FINE_CLASSES + 7 * 8,
	KBI_UNIT_SHIFT = 16,
	KBI_UNIT = 1 << KBI_UNIT_SHIFT,
	KBI_RECIPROCAL_SHIFT = 40,
	/* length and alignment of a magazine (an array of pointers to blocks, heap_owner.h), bytes */
	KBI_MAGAZINE = 512,
	KBI_MAGAZINE_BLOCKS = (KBI_MAGAZINE - 8) / sizeof(void *) - 1,
	/* bytes of the blocks in a magazine, at most, if it holds more than four */
	KBI_MAGAZINE_BYTES = 16384,
	/* bytes of the blocks taken from a slab at once, at most, if more than four: so at most that
	 * much more than the program's peak is in circulation */
	KBI_FILL_BYTES = 4096,
};

struct kbi_class {
	uint64_t reciprocal; /* offset * reciprocal >> 40 is offset / size, for offsets in a slab */
	uint32_t size;
	uint16_t blocks;     /* in a slab */
	uint8_t units;       /* of a slab */
	uint8_t room;        /* blocks that a magazine holds */
	uint8_t fill;        /* blocks that are taken from a slab at once */
	uint8_t more;        /* full magazines that an owner keeps */
};

/* Returns the class for n bytes, KBI_HEAP_FINE < n <= KBI_HEAP_SMALL. */
static inline unsigned kbi_class_coarse(size_t n)
{
	unsigned e = 63 - (unsigned)__builtin_clzll((unsigned long long)(n - 1));

	return KBI_HEAP_FINE_CLASSES + 1 + (e - KBI_HEAP_FINE_LOG) * 8 +
	       (unsigned)((n - 1) >> (e - 3)) - 8;
}

/* Returns the class for n bytes, n <= KBI_HEAP_SMALL; 0 for 0. */
static inline unsigned kbi_class_of(size_t n)
{
	return n <= KBI_HEAP_FINE ? (unsigned)((n + KBI_HEAP_GRAIN - 1) / KBI_HEAP_GRAIN) :
				    kbi_class_coarse(n);
}

/* Returns the bytes of a block of class k. */
static inline uint32_t kbi_class_bytes(unsigned k)
{
	unsigned above = k - KBI_HEAP_FINE_CLASSES - 1;

	return k <= KBI_HEAP_FINE_CLASSES ? k * KBI_HEAP_GRAIN :
					    (9 + above % 8) << (above / 8 + KBI_HEAP_FINE_LOG - 3);
}

static inline struct kbi_class kbi_class_make(unsigned k)
{
	uint32_t size = k ? kbi_class_bytes(k) : 1, units = 1,
		 room = KBI_MAGAZINE_BYTES / size, fill, more;

	while (units * KBI_UNIT / size < 16)
		units *= 2;
	room = room > KBI_MAGAZINE_BLOCKS ? KBI_MAGAZINE_BLOCKS : room < 4 ? 4 : room;
	more = 2 * KBI_UNIT / (room * size);
	fill = KBI_FILL_BYTES / size;
	return (struct kbi_class){
		.size = size,
		.reciprocal = (((uint64_t)1 << KBI_RECIPROCAL_SHIFT) + size - 1) / size,
		.blocks = (uint16_t)(units * KBI_UNIT / size),
		.units = (uint8_t)units,
		.room = (uint8_t)room,
		.fill = (uint8_t)(fill > room ? room : fill < 4 ? 4 : fill),
		.more = (uint8_t)(more > 16 ? 16 : more < 2 ? 2 : more),
	};
}

#endif
