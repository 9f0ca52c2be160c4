/* base/lane.h - a bounded work-stealing array of small records after Chase and Lev: the owner puts records in at the
 * bottom and takes the newest from there, thieves take the oldest from the top. Records are copied, so nothing is
 * allocated.
 * The argument (Le, Pop, Cohen and Nardelli, PPoPP 2013):
 * - top only grows, each time by a CAS: whoever moves it past a record has that record.
 * - The owner takes from the bottom without a CAS unless it is the last record: it lowers bottom, then reads top
 *   behind a full fence; a thief reads top, then bottom behind a full fence. So a thief that read the old bottom had
 *   read a top that the owner sees or that stands below the owner's record, and of two that want the last record the
 *   CAS decides.
 * - A slot is written again only after the owner has read (acquire) a top that has passed it: a late thief, which may
 *   read a slot while it is written, fails at its CAS and throws the words away. Hence slots are read and written
 *   relaxed.
 * - Every store of bottom is a release, so whichever of them a thief reads (acquire), it sees the records below it.
 * Where no thief can be at work (core/solo) the owner needs neither fence nor CAS: `alone`. base/deque, the
 * scheduler's, has a single end for all takers, since there the oldest is to run next.
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
	a64 top KBI_ALIGNED(KBI_CACHE_LINE);    /* all, by CAS; while the owner is alone by plain stores */
	a64 bottom KBI_ALIGNED(KBI_CACHE_LINE); /* owner writes, all read */
	uint64_t known;                         /* owner only: a value that top has had */
	struct kbi_lane_slot slot[KBI_LANE_SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
};

static inline void kbi_lane_read(struct kbi_lane *l, uint64_t at, struct kbi_record *r)
{
	struct kbi_lane_slot *s = &l->slot[at % KBI_LANE_SLOTS];

	r->word[0] = a_load_rlx(&s->word[0]);
	r->word[1] = a_load_rlx(&s->word[1]);
	r->word[2] = a_load_rlx(&s->word[2]);
}

/* Anybody: is there anything, as a hint. */
static inline bool kbi_lane_is_empty(const struct kbi_lane *l)
{
	return a_load_rlx(&l->top) >= a_load_rlx(&l->bottom);
}

/* Owner: false: it is full. In parallel with any thief. */
static inline bool kbi_lane_put(struct kbi_lane *l, void *a, void *b, void *c)
{
	uint64_t bottom = a_load_rlx(&l->bottom);
	struct kbi_lane_slot *s = &l->slot[bottom % KBI_LANE_SLOTS];

	if (kbi_unlikely(bottom - l->known >= KBI_LANE_SLOTS)) {
		/* acquire: partner is the CAS of a thief, which has read its slot */
		l->known = a_load_acq(&l->top);
		if (bottom - l->known >= KBI_LANE_SLOTS)
			return false;
	}
	a_store_rlx(&s->word[0], a);
	a_store_rlx(&s->word[1], b);
	a_store_rlx(&s->word[2], c);
	/* release: partner is the acquire of bottom in kbi_lane_steal */
	a_store_rel(&l->bottom, bottom + 1);
	return true;
}

/* Owner: the last word of the newest record, to be believed only if the record is taken; NULL: there is none. */
static inline void *kbi_lane_newest(const struct kbi_lane *l)
{
	uint64_t bottom = a_load_rlx(&l->bottom);

	if (a_load_rlx(&l->top) >= bottom)
		return NULL;
	return a_load_rlx(&l->slot[(bottom - 1) % KBI_LANE_SLOTS].word[2]);
}

/* Owner: takes the newest record; false: a thief was first. The lane has had a record a moment ago. In parallel with any
 * thief, unless alone: then there is none, and none begins before this is over. */
static inline bool kbi_lane_take(struct kbi_lane *l, struct kbi_record *r, bool alone)
{
	uint64_t bottom = a_load_rlx(&l->bottom) - 1, top;
	bool mine = true;

	if (alone) {
		/* acquire: partner is the CAS of a thief that was at work before */
		if (a_load_acq(&l->top) > bottom)
			return false;
		kbi_lane_read(l, bottom, r);
		/* release: as in kbi_lane_put */
		a_store_rel(&l->bottom, bottom);
		return true;
	}
	a_store_rel(&l->bottom, bottom); /* release: as in kbi_lane_put */
	a_fence_sc();                    /* partner: the fence in kbi_lane_steal */
	top = a_load_rlx(&l->top);
	kbi_lane_read(l, bottom, r);
	if (kbi_likely(top < bottom))
		return true;
	if (top == bottom)
		/* the last: acquire and release as in kbi_lane_steal */
		mine = a_cas_acqrel(&l->top, &top, top + 1);
	else
		mine = false;
	a_store_rel(&l->bottom, bottom + 1); /* release: as in kbi_lane_put */
	return mine;
}

/* Thief: takes the oldest record; false: there is none, or another was faster. In parallel with everybody. */
static inline bool kbi_lane_steal(struct kbi_lane *l, struct kbi_record *r)
{
	uint64_t top = a_load_acq(&l->top); /* acquire: partner is the CAS of the thief before */

	a_fence_sc(); /* partner: the fence in kbi_lane_take */
	/* acquire: partner is every store of bottom by the owner */
	if (top >= a_load_acq(&l->bottom))
		return false;
	kbi_lane_read(l, top, r);
	/* release: partner is the acquire of top in kbi_lane_put, the slot has been read; acquire: the next thief's */
	return a_cas_acqrel(&l->top, &top, top + 1);
}

#endif
