/* mem/heap_stats.h - statistics of the heap, counted from its records: exact when no other thread
 * allocates, else approximate. Allocates nothing.
 *
 * Callers: posix/malloc. Any thread; not signal handlers. Locks: the space's, briefly. Never
 * switches. */
#ifndef KBI_HEAP_STATS_H
#define KBI_HEAP_STATS_H

#include "mem/heap_owner.h"

struct kbi_stats_class {
	/* all blocks of the class, and those that are not free in their slabs */
	size_t slabs, blocks, out;
};

struct kbi_stats {
	struct kbi_space_count space;
	struct kbi_owner_count count; /* of all owners */
	size_t owners, orphans;
	size_t large, large_bytes;
	/* length of all slabs; bytes of blocks that are out of them: the program's, and in magazines */
	size_t slab_bytes, out_bytes;
	struct kbi_stats_class class[KBI_HEAP_CLASSES];
};

/* Fills s. */
void kbi_stats_take(struct kbi_stats *s);
/* Writes the statistics as JSON into buf, always terminated if size > 0. Returns the length without
 * the limit, as snprintf. */
size_t kbi_stats_json(char *buf, size_t size);

#endif
