/* base/marks.h - a set of small numbers. Any thread adds numbers; a single thread at a time empties
 * the set. Two levels of bits make adding O(1) and emptying O(size of the set). Sound between
 * processes: no lock, no pointer, and a process that stops between two steps has at most not added
 * its own number.
 *
 * Adding sets the leaf, passes a full fence, and sets the top bit (unless it is set). Emptying
 * clears the top, passes a full fence, and clears the leaves. If adding finds the top bit set,
 * emptying has yet to clear it and then finds the leaf. Model: model/marks.pml.
 * Callers: space/note. */
#ifndef KBI_MARKS_H
#define KBI_MARKS_H

#include "base/atom.h"

/* count of numbers; numbers under a bit of the top */
enum { KBI_MARKS = 16384, KBI_MARKS_GROUP = KBI_MARKS / 64 };

struct kbi_marks {
	a64 top;
	a64 leaf[KBI_MARKS / 64] KBI_ALIGNED(KBI_CACHE_LINE);
} KBI_ALIGNED(KBI_CACHE_LINE);

/* Adds a number. Any thread. Acts as a full fence: a load after this call reads memory when the
 * mark is already visible. */
static inline void kbi_marks_add(struct kbi_marks *m, uint32_t n)
{
	uint64_t group = UINT64_C(1) << n / KBI_MARKS_GROUP;

	/* release: pairs with the exchange in kbi_marks_take: a thread that finds the mark sees the
	 * data it stands for */
	a_or_acqrel(&m->leaf[n / 64], UINT64_C(1) << n % 64);
	a_fence_after_rmw(); /* pairs with the fence in kbi_marks_take */
	if (a_load_rlx(&m->top) & group)
		return;
	/* release: pairs with the exchange of top in kbi_marks_take */
	a_or_acqrel(&m->top, group);
	a_fence_after_rmw();
}

static inline bool kbi_marks_any(const struct kbi_marks *m)
{
	return a_load_rlx(&m->top);
}

/* Empties the set: calls found(arg, first, bits) for each 64 numbers from `first` that were not all
 * absent. One caller at a time. */
static inline void kbi_marks_take(struct kbi_marks *m,
	void (*found)(void *arg, uint32_t first, uint64_t bits), void *arg)
{
	/* acquire: pairs with the second OR in kbi_marks_add: the leaf of each top bit is visible */
	uint64_t top = a_xchg_acqrel(&m->top, 0), bits;

	a_fence_after_rmw(); /* pairs with the fence in kbi_marks_add */
	for (; top; top &= top - 1) {
		uint32_t leaf = (uint32_t)__builtin_ctzll(top) * (KBI_MARKS_GROUP / 64);

		for (uint32_t i = leaf; i < leaf + KBI_MARKS_GROUP / 64; i++)
			/* acquire: pairs with the release in kbi_marks_add */
			if (a_load_rlx(&m->leaf[i]) && (bits = a_xchg_acqrel(&m->leaf[i], 0)))
				found(arg, i * 64, bits);
	}
}

#endif
