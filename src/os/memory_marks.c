/* os/memory_marks.c - memory treated differently in children. Contract in memory_marks.h.
 * A table of ranges under a lock; a range that loses its mark in the middle becomes two ranges. */
#include "os/memory_marks.h"

#include <errno.h>
#include <sys/mman.h>

#include "os/lock.h"
#include "os/sys.h"

enum { MOST = 512 };

struct range {
	uintptr_t from, to;
	enum kbi_memory_mark mark;
};

static struct {
	a32 lock;
	/* under the lock */
	unsigned n;
	struct range range[MOST];
} marks;

static bool add_marked_range(uintptr_t from, uintptr_t to, enum kbi_memory_mark mark)
{
	if (from >= to)
		return true;
	if (marks.n == MOST)
		return false;
	marks.range[marks.n++] = (struct range){ from, to, mark };
	return true;
}

/* Removes from..to from all ranges with a mark of `which`. The rests of cut ranges are added behind
 * them and are not cut. Returns false if there was no room. */
static bool cut_marked_ranges(uintptr_t from, uintptr_t to, unsigned which)
{
	bool room = true;

	for (unsigned i = marks.n; i-- > 0;) {
		struct range r = marks.range[i];

		if (!(r.mark & which) || r.to <= from || r.from >= to)
			continue;
		marks.range[i] = marks.range[--marks.n];
		room &= add_marked_range(r.from, r.from < from ? from : r.from, r.mark);
		room &= add_marked_range(r.to > to ? to : r.to, r.to, r.mark);
	}
	return room;
}

int kbi_memory_mark(uintptr_t from, size_t bytes, enum kbi_memory_mark mark, bool has)
{
	bool room;

	kbi_lock_take(&marks.lock);
	room = marks.n + 2 <= MOST && cut_marked_ranges(from, from + bytes, mark);
	if (room && has)
		room = add_marked_range(from, from + bytes, mark);
	kbi_lock_leave(&marks.lock);
	return room ? 0 : ENOMEM;
}

void kbi_memory_unmark(uintptr_t from, size_t bytes)
{
	if (!marks.n)
		return;
	kbi_lock_take(&marks.lock);
	cut_marked_ranges(from, from + bytes, KBI_MEMORY_WIPED | KBI_MEMORY_NOT_CHILDS);
	kbi_lock_leave(&marks.lock);
}

void kbi_memory_obey_marks(void)
{
	for (unsigned i = 0; i < marks.n; i++) {
		const struct range r = marks.range[i];

		if (r.mark == KBI_MEMORY_WIPED)
			kbi_sys(SYS_madvise, r.from, r.to - r.from, MADV_DONTNEED);
		else
			kbi_sys(SYS_munmap, r.from, r.to - r.from);
	}
	marks.n = 0;
	a_store_rlx(&marks.lock, 0);
}
