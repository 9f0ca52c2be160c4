/* mem/heap_class.h - size classes: which blocks there are. Steps of 16 bytes to 256, then eight steps in each doubling,
 * to 32 KiB: what is handed out is at most 12 % more than was asked for, or 15 bytes. What is larger is a span of its own.
 *
 * Class k's blocks lie side by side in slabs of 1 to 8 units of 64 KiB. A power of two is a class, and its blocks lie at
 * its multiples; so do those of 2^a * m at multiples of 2^a: aligned blocks need nothing more than a class.
 * Callers: the heap's units. Constant after kbi_space_setup. */
#ifndef KBI_HEAP_CLASS_H
#define KBI_HEAP_CLASS_H

#include "base/base.h"

enum {
	KBI_HEAP_GRAIN = 16,
	KBI_HEAP_FINE = 256,       /* to here in steps of the grain */
	KBI_HEAP_FINE_LOG = 8,
	KBI_HEAP_LOOKED_UP = 2048, /* to here a table tells the class */
	KBI_HEAP_SMALL = 32768,    /* the largest class */
	KBI_HEAP_FINE_CLASSES = KBI_HEAP_FINE / KBI_HEAP_GRAIN,
	KBI_HEAP_CLASSES = 1 + KBI_HEAP_FINE_CLASSES + 7 * 8, /* 0 is no class: its bin is always empty */
	KBI_UNIT_SHIFT = 16,
	KBI_UNIT = 1 << KBI_UNIT_SHIFT,
	KBI_RECIPROCAL_SHIFT = 40,
	KBI_MAGAZINE = 512,         /* bytes of one, and what it is aligned to */
	KBI_MAGAZINE_BLOCKS = (KBI_MAGAZINE - 8) / sizeof(void *) - 1,
	KBI_MAGAZINE_BYTES = 16384, /* of blocks at most, if it holds more than four */
	KBI_FILL_BYTES = 4096,      /* taken from a slab at once, likewise: what the program has at most and this go round */
};

struct kbi_class {
	uint64_t reciprocal; /* offset * reciprocal >> 40 is offset / size, for offsets in a slab */
	uint32_t size;
	uint16_t blocks;     /* in a slab */
	uint8_t units;       /* of a slab */
	uint8_t room;        /* blocks in a magazine */
	uint8_t fill;        /* blocks of a slab's that are put into one at once */
	uint8_t more;        /* full magazines that an owner keeps */
};

/* The class for n bytes, KBI_HEAP_FINE < n <= KBI_HEAP_SMALL. */
static inline unsigned kbi_class_coarse(size_t n)
{
	unsigned e = 63 - (unsigned)__builtin_clzll((unsigned long long)(n - 1));

	return KBI_HEAP_FINE_CLASSES + 1 + (e - KBI_HEAP_FINE_LOG) * 8 + (unsigned)((n - 1) >> (e - 3)) - 8;
}

/* The class for n bytes, n <= KBI_HEAP_SMALL; 0 for 0. */
static inline unsigned kbi_class_of(size_t n)
{
	return n <= KBI_HEAP_FINE ? (unsigned)((n + KBI_HEAP_GRAIN - 1) / KBI_HEAP_GRAIN) : kbi_class_coarse(n);
}

static inline uint32_t kbi_class_bytes(unsigned k)
{
	unsigned above = k - KBI_HEAP_FINE_CLASSES - 1;

	return k <= KBI_HEAP_FINE_CLASSES ? k * KBI_HEAP_GRAIN : (9 + above % 8) << (above / 8 + KBI_HEAP_FINE_LOG - 3);
}

static inline struct kbi_class kbi_class_make(unsigned k)
{
	uint32_t size = k ? kbi_class_bytes(k) : 1, units = 1, room = KBI_MAGAZINE_BYTES / size, fill, more;

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
