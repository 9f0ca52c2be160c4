/* base/lane.h - a bounded work-stealing array of small records after Chase and Lev. The owner puts
 * records in at the bottom and takes the newest from there; thieves take the oldest from the top.
 * Records are copied, so nothing is allocated.
 * The argument (Le, Pop, Cohen and Nardelli, PPoPP 2013):
 * - top only grows, each time by a CAS. A thread that moves top past a record has that record.
 * - The owner takes from the bottom without a CAS, except for the last record: it lowers bottom,
 *   then reads top after a full fence. A thief reads top, then reads bottom after a full fence. So
 *   a thief that read the old bottom had read a top that the owner sees, or a top below the owner's
 *   record. When owner and thief want the last record, the CAS decides.
 * - A slot is written again only after the owner has read (acquire) a top that has passed it. A
 *   late thief, which may read a slot while it is written, fails at its CAS and discards the words.
 *   Hence slots are read and written relaxed.
 * - Every store of bottom is a release, so whichever store a thief reads (acquire), the thief sees
 *   the records below it.
 * Where no thief can be active (core/single_threaded) the owner needs neither fence nor CAS:
 * `alone`. base/deque, the scheduler's array, has a single end for all takers, because there the
 * oldest item is to run next.
 * Callers: sync/crew. */
#ifndef KBI_LANE_H
#define KBI_LANE_H

#include "base/atom.h"

enum { KBI_LANE_SLOTS = 4096 };

struct kbi_record {
	void *word[3];
};

struct kbi_lane_slot {
	aptr word[3];
};

struct kbi_lane {
	/* all, by CAS; by plain stores while the owner is alone */
	a64 top KBI_ALIGNED(KBI_CACHE_LINE);
	a64 bottom KBI_ALIGNED(KBI_CACHE_LINE); /* written by the owner, read by all */
	uint64_t known;                         /* owner only: an earlier value of top */
	struct kbi_lane_slot slot[KBI_LANE_SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
};

static inline void kbi_lane_read(struct kbi_lane *l, uint64_t at, struct kbi_record *r)
{
	struct kbi_lane_slot *s = &l->slot[at % KBI_LANE_SLOTS];

	r->word[0] = a_load_rlx(&s->word[0]);
	r->word[1] = a_load_rlx(&s->word[1]);
	r->word[2] = a_load_rlx(&s->word[2]);
}

/* Any thread: returns true if the lane is empty, as a hint. */
static inline bool kbi_lane_is_empty(const struct kbi_lane *l)
{
	return a_load_rlx(&l->top) >= a_load_rlx(&l->bottom);
}

/* Owner: puts a record in. Returns false if the lane is full. May run in parallel with any
 * thief. */
static inline bool kbi_lane_put(struct kbi_lane *l, void *a, void *b, void *c)
{
	uint64_t bottom = a_load_rlx(&l->bottom);
	struct kbi_lane_slot *s = &l->slot[bottom % KBI_LANE_SLOTS];

	if (kbi_unlikely(bottom - l->known >= KBI_LANE_SLOTS)) {
		/* acquire: pairs with the CAS in kbi_lane_steal; the thief has read its slot */
		l->known = a_load_acq(&l->top);
		if (bottom - l->known >= KBI_LANE_SLOTS)
			return false;
	}
	a_store_rlx(&s->word[0], a);
	a_store_rlx(&s->word[1], b);
	a_store_rlx(&s->word[2], c);
	/* release: pairs with the acquire of bottom in kbi_lane_steal */
	a_store_rel(&l->bottom, bottom + 1);
	return true;
}

/* Owner: returns the last word of the newest record, which is valid only if the record is taken;
 * NULL: no record. */
static inline void *kbi_lane_newest(const struct kbi_lane *l)
{
	uint64_t bottom = a_load_rlx(&l->bottom);

	if (a_load_rlx(&l->top) >= bottom)
		return NULL;
	return a_load_rlx(&l->slot[(bottom - 1) % KBI_LANE_SLOTS].word[2]);
}

/* Owner: takes the newest record. Returns false if a thief was first. The lane had a record a
 * moment ago. May run in parallel with any thief. If `alone`, there is no thief, and none begins
 * before this function returns. */
static inline bool kbi_lane_take(struct kbi_lane *l, struct kbi_record *r, bool alone)
{
	uint64_t bottom = a_load_rlx(&l->bottom) - 1, top;
	bool mine = true;

	if (alone) {
		/* acquire: pairs with the CAS in kbi_lane_steal of an earlier thief */
		if (a_load_acq(&l->top) > bottom)
			return false;
		kbi_lane_read(l, bottom, r);
		/* release: as in kbi_lane_put */
		a_store_rel(&l->bottom, bottom);
		return true;
	}
	a_store_rel(&l->bottom, bottom); /* release: as in kbi_lane_put */
	a_fence_sc();                    /* pairs with the fence in kbi_lane_steal */
	top = a_load_rlx(&l->top);
	kbi_lane_read(l, bottom, r);
	if (kbi_likely(top < bottom))
		return true;
	if (top == bottom)
		/* the last record: acquire and release as in kbi_lane_steal */
		mine = a_cas_acqrel(&l->top, &top, top + 1);
	else
		mine = false;
	a_store_rel(&l->bottom, bottom + 1); /* release: as in kbi_lane_put */
	return mine;
}

/* Thief: takes the oldest record. Returns false if there is none, or a thread was faster. May run
 * in parallel with all functions. */
static inline bool kbi_lane_steal(struct kbi_lane *l, struct kbi_record *r)
{
	uint64_t top = a_load_acq(&l->top); /* acquire: pairs with the CAS of the previous thief */

	a_fence_sc(); /* pairs with the fence in kbi_lane_take */
	/* acquire: pairs with every store of bottom by the owner */
	if (top >= a_load_acq(&l->bottom))
		return false;
	kbi_lane_read(l, top, r);
	/* release: pairs with the acquire of top in kbi_lane_put, the slot has been read; acquire:
	 * pairs with the CAS of the previous thief */
	return a_cas_acqrel(&l->top, &top, top + 1);
}

#endif
