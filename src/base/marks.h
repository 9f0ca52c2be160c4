/* base/marks.h - a set of small numbers that anybody adds to and one empties: two levels of bits, so that adding is O(1)
 * and emptying O(what is in it). Sound between processes: no lock, no pointer, and whoever stops between two
 * steps has at most not added its own number.
 *
 * Adding: leaf, full fence, top (if it is not set already). Emptying: top, full fence, leaves. If adding finds the top
 * set, emptying has yet to clear it and finds the leaf then. Model: model/marks.pml.
 * Callers: space/note. */
#ifndef KBI_MARKS_H
#define KBI_MARKS_H

#include "base/atom.h"

enum { KBI_MARKS = 16384, KBI_MARKS_GROUP = KBI_MARKS / 64 }; /* numbers; under one bit of the top */

struct kbi_marks {
	a64 top;
	a64 leaf[KBI_MARKS / 64] KBI_ALIGNED(KBI_CACHE_LINE);
} KBI_ALIGNED(KBI_CACHE_LINE);

/* Anybody. A full fence: what is loaded afterwards is loaded when the mark is seen. */
static inline void kbi_marks_add(struct kbi_marks *m, uint32_t n)
{
	uint64_t group = UINT64_C(1) << n / KBI_MARKS_GROUP;

	/* release: partner is the exchange in kbi_marks_take: who finds the mark sees what it is about */
	a_or_acqrel(&m->leaf[n / 64], UINT64_C(1) << n % 64);
	a_fence_after_rmw(); /* partner: the one in kbi_marks_take */
	if (a_load_rlx(&m->top) & group)
		return;
	a_or_acqrel(&m->top, group);
	a_fence_after_rmw();
}

static inline bool kbi_marks_any(const struct kbi_marks *m)
{
	return a_load_rlx(&m->top);
}

/* One at a time: found(arg, first, bits) for each 64 numbers from `first` of which some were in it. */
static inline void kbi_marks_take(struct kbi_marks *m, void (*found)(void *arg, uint32_t first, uint64_t bits), void *arg)
{
	uint64_t top = a_xchg_acqrel(&m->top, 0), bits;

	a_fence_after_rmw(); /* partner: the one in kbi_marks_add */
	for (; top; top &= top - 1) {
		uint32_t leaf = (uint32_t)__builtin_ctzll(top) * (KBI_MARKS_GROUP / 64);

		for (uint32_t i = leaf; i < leaf + KBI_MARKS_GROUP / 64; i++)
			/* acquire: partner is the release in kbi_marks_add */
			if (a_load_rlx(&m->leaf[i]) && (bits = a_xchg_acqrel(&m->leaf[i], 0)))
				found(arg, i * 64, bits);
	}
}

#endif
