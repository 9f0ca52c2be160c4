/* mem/heap_stats.h - what the heap holds and did, counted from its records: a snapshot that is right when no other thread
 * allocates, and near it when some do. Takes no memory.
 * Callers: posix/malloc. Calls heap_space, heap_owner. Any thread; not signal handlers. */
#ifndef KBI_HEAP_STATS_H
#define KBI_HEAP_STATS_H

#include "mem/heap_owner.h"

struct kbi_stats_class {
	size_t slabs, blocks, out; /* blocks there are, and those that are not free in their slabs */
};

struct kbi_stats {
	struct kbi_space_count space;
	struct kbi_owner_count count; /* of all owners */
	size_t owners, orphans;
	size_t large, large_bytes;
	size_t slab_bytes, out_bytes; /* slabs' length; blocks out of them: the program's, and those in magazines */
	struct kbi_stats_class class[KBI_HEAP_CLASSES];
};

void kbi_stats_take(struct kbi_stats *s);
/* As JSON into buf, always terminated; the length that it has without a limit, as snprintf. */
size_t kbi_stats_json(char *buf, size_t size);

#endif
