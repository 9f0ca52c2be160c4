/* mem/heap_large.c - large blocks. Contract in heap_large.h. */
#include "mem/heap_large.h"

#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

enum { MOVE = 4 * KBI_UNIT }; /* bytes from which on moving pages is cheaper than copying them */

static size_t units_for(size_t bytes)
{
	return (bytes + KBI_UNIT - 1) >> KBI_UNIT_SHIFT;
}

static struct kbi_slab *large_record(const void *p)
{
	return &kbi_space.slab[kbi_space_unit(p)];
}

void *kbi_large_take(size_t bytes, size_t align, bool *zero)
{
	size_t unit;

	if (bytes > PTRDIFF_MAX || align > PTRDIFF_MAX)
		return NULL;
	unit = kbi_space_take(units_for(bytes), align > KBI_UNIT ? align >> KBI_UNIT_SHIFT : 1, zero);
	if (unit == ~(size_t)0)
		return NULL;
	a_store_rlx(&kbi_space.tag[unit], KBI_TAG_LARGE);
	return kbi_space_at(unit);
}

void kbi_large_give(void *p)
{
	size_t unit = kbi_space_unit(p);

	a_store_rlx(&kbi_space.tag[unit], 0);
	kbi_space_give(unit, large_record(p)->units);
}

size_t kbi_large_bytes(const void *p)
{
	return (size_t)large_record(p)->units << KBI_UNIT_SHIFT;
}

/* Moves the pages under `from` to `to`; fresh pages take their place in the same call: with a hole
 * for a moment, another thread's mapping could be placed there. Needs Linux 5.7; false: the caller
 * copies. */
static bool move_pages(void *from, size_t bytes, void *to)
{
	enum { DONTUNMAP = 4 };
	long r = kbi_sys(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | DONTUNMAP, to);

	if (r != (long)(uintptr_t)to)
		return false;
	large_record(to)->moved = true;
	return true;
}

static void *move_large_block(void *p, size_t bytes)
{
	size_t old = kbi_large_bytes(p), keep = old < bytes ? old : bytes;
	bool zero;
	void *q = kbi_large_take(bytes, 1, &zero);

	if (!q)
		return NULL;
	if (keep < MOVE || kbi_space.shared || !move_pages(p, keep, q))
		memcpy(q, p, keep);
	kbi_large_give(p);
	return q;
}

void *kbi_large_resize(void *p, size_t bytes)
{
	struct kbi_slab *s = large_record(p);
	size_t unit = kbi_space_unit(p), had = s->units, want = units_for(bytes);

	if (bytes > PTRDIFF_MAX)
		return NULL;
	if (want < had) {
		kbi_space_cut(unit, want);
		return p;
	}
	if (want == had || kbi_space_extend(unit, had, want - had))
		return p;
	return move_large_block(p, bytes);
}
