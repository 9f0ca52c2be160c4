/* base/deque.h - a bounded work-stealing array after Chase and Lev, in the form with ONE end for takers: the owner
 * puts in at the bottom, and everybody, the owner too, takes from the top by a compare-and-swap of one word.
 *
 * Why not the owner last in, first out, as in the original: (1) a thread that yields must go behind the others, and
 * the owner's own end would give it straight back; (2) the owner's take there costs a full fence (its store of
 * bottom before its load of top), which is no cheaper than the compare-and-swap here; (3) thieves here may take
 * half of the array with one compare-and-swap; against an owner who takes without one, only a single item is
 * safe: the owner could walk down into a range that a thief has read but not yet claimed.
 * What was put in last can be taken back (kbi_deque_take_back): the word top carries a tag for that.
 *
 * The argument (after Le, Pop, Cohen and Nardelli, PPoPP 2013, who treat the original):
 * - An item is claimed by whoever moves top past it; each such move is a CAS of {tag, index} from the value that
 *   was read before the slots were; so if it succeeds, nobody else has moved top or changed the tag since.
 * - What a taker read is what was put there: it read bottom with acquire, so it sees the slots the owner had
 *   filled below it; the owner reuses a slot only after it has read (acquire) a top that has passed it, and
 *   then the taker's CAS fails. The slots are read and written relaxed because a taker that is late may read one
 *   while it is reused; it then throws away what it read.
 * - top is read before bottom (acquire): bottom is then at least as new as top, so the count is not negative,
 *   unless a take-back is under way, and then the count is 0 or the CAS fails on the tag.
 * - Take-back: the owner lowers bottom, then changes the tag by a CAS with release. A thief whose CAS comes after it
 *   has read the new word (acquire), hence the lowered bottom; a thief that read the old word fails.
 * No store-load fence is needed: every claim is a read-modify-write of the same word.
 * Indices run on 32 bits: a taker that stands still while 2^32 tasks and 2^32 tags go by would err.
 * Callers: core/sched_steal. */
#ifndef KBI_DEQUE_H
#define KBI_DEQUE_H

#include "base/atom.h"

enum { KBI_DEQUE_SLOTS = 8192 };

struct kbi_deque {
	a64 top KBI_ALIGNED(64);    /* tag << 32 | index; all, by CAS */
	a32 bottom KBI_ALIGNED(64); /* owner writes, all read */
	aptr slot[KBI_DEQUE_SLOTS] KBI_ALIGNED(64);
};

static inline uint32_t kbi_deque_index(uint64_t top)
{
	return (uint32_t)top;
}

static inline uint64_t kbi_deque_advance(uint64_t top, uint32_t n)
{
	return (top & ~(uint64_t)UINT32_MAX) | (uint32_t)((uint32_t)top + n);
}

/* Anybody: how many, as a hint. */
static inline uint32_t kbi_deque_count(const struct kbi_deque *d)
{
	int32_t n = (int32_t)(a_load_rlx(&d->bottom) - kbi_deque_index(a_load_rlx(&d->top)));

	return n > 0 ? (uint32_t)n : 0;
}

/* Owner: puts in `n` items that stand from bottom on already. release: partner is the acquire of bottom in
 * kbi_deque_look. */
static inline void kbi_deque_publish(struct kbi_deque *d, uint32_t n)
{
	a_store_rel(&d->bottom, a_load_rlx(&d->bottom) + n);
}

/* Owner: free slots. acquire: partner is the release in the CAS of a taker; its reads are done. */
static inline uint32_t kbi_deque_room(const struct kbi_deque *d)
{
	return KBI_DEQUE_SLOTS - (a_load_rlx(&d->bottom) - kbi_deque_index(a_load_acq(&d->top)));
}

/* Owner: false: full. In parallel with any taker. */
static inline bool kbi_deque_put(struct kbi_deque *d, void *item)
{
	if (!kbi_deque_room(d))
		return false;
	a_store_rlx(&d->slot[a_load_rlx(&d->bottom) % KBI_DEQUE_SLOTS], item);
	kbi_deque_publish(d, 1);
	return true;
}

/* Taker: reads top and how many items there are from it on. */
static inline uint32_t kbi_deque_look(const struct kbi_deque *d, uint64_t *top)
{
	int32_t n;

	/* acquire: partner is the CAS of the last taker, or of a take-back: bottom is as new as top */
	*top = a_load_acq(&d->top);
	/* acquire: partner is kbi_deque_publish */
	n = (int32_t)(a_load_acq(&d->bottom) - kbi_deque_index(*top));
	return n > 0 ? (uint32_t)n : 0;
}

/* Taker: the i-th item from top, to be believed only if the claim succeeds. */
static inline void *kbi_deque_peek(const struct kbi_deque *d, uint64_t top, uint32_t i)
{
	return a_load_rlx(&d->slot[(kbi_deque_index(top) + i) % KBI_DEQUE_SLOTS]);
}

/* Taker: claims the n items from top on. acquire and release: partner are kbi_deque_room (our reads of the
 * slots are done) and the other takers' look. */
static inline bool kbi_deque_claim(struct kbi_deque *d, uint64_t top, uint32_t n)
{
	return a_cas_acqrel(&d->top, &top, kbi_deque_advance(top, n));
}

/* Anybody: the oldest item, NULL: none. */
static inline void *kbi_deque_take(struct kbi_deque *d)
{
	uint64_t top;
	void *item;

	do {
		if (!kbi_deque_look(d, &top))
			return NULL;
		item = kbi_deque_peek(d, top, 0);
	} while (!kbi_deque_claim(d, top, 1));
	return item;
}

/* Owner: takes back `item` if it was put in last and nobody has it. */
static inline bool kbi_deque_take_back(struct kbi_deque *d, const void *item)
{
	uint32_t b = a_load_rlx(&d->bottom);
	uint64_t top = a_load_acq(&d->top); /* as in kbi_deque_look */

	if (b == kbi_deque_index(top) || a_load_rlx(&d->slot[(b - 1) % KBI_DEQUE_SLOTS]) != item)
		return false;
	a_store_rlx(&d->bottom, b - 1);
	do {
		if (kbi_deque_index(top) == b) {
			/* taken meanwhile. release: as kbi_deque_publish */
			a_store_rel(&d->bottom, b);
			return false;
		}
		/* the tag goes up; release: bottom is lowered before it, partner is the acquire in kbi_deque_look */
	} while (!a_cas_acqrel(&d->top, &top, top + ((uint64_t)1 << 32)));
	return true;
}

#endif
