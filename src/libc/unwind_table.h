/* libc/unwind_table.h - the table by which unwinders find a function, as the linker writes it
 * (PT_GNU_EH_FRAME): sorted pairs of a function's beginning and its description, both relative to
 * the beginning of the table.
 * Callers: libc. Async-signal-safe. */
#ifndef KBI_UNWIND_TABLE_H
#define KBI_UNWIND_TABLE_H

#include "base/base.h"

struct kbi_unwind_table {
	uint8_t version, frame_as, count_as, pair_as;
	int32_t frame;
	uint32_t count;
	struct {
		int32_t from, fde;
	} pair[];
};

enum { KBI_UNWIND_RELATIVE_4 = 0x1b };

/* Returns true if the table has the form that all linkers use. */
static inline bool kbi_unwind_table_is_known(const struct kbi_unwind_table *t)
{
	enum { PLAIN_4 = 0x03, TABLE_4 = 0x3b };

	return t && t->version == 1 && t->frame_as == KBI_UNWIND_RELATIVE_4 && t->count_as == PLAIN_4 &&
		t->pair_as == TABLE_4;
}

static inline uintptr_t kbi_unwind_table_place(const struct kbi_unwind_table *t, int32_t relative)
{
	return (uintptr_t)t + (uintptr_t)relative;
}

/* Returns the index of the last function that begins at or before that address; -1: none. */
static inline int64_t kbi_unwind_table_find(const struct kbi_unwind_table *t, uintptr_t at)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (kbi_unwind_table_place(t, t->pair[middle].from) <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low - 1;
}

#endif
