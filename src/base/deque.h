/* base/deque.h - a bounded work-stealing array after Chase and Lev, in the form with ONE end for
 * all takers: the owner puts items in at the bottom, and all takers, including the owner, take from
 * the top by a compare-and-swap of one word.
 *
 * Why the owner does not take last in, first out, as in the original: (1) A yielding thread must go
 * behind the ready threads, and the owner's own end would return it at once. (2) There the owner's
 * take costs a full fence (its store of bottom before its load of top), which is no cheaper than
 * the compare-and-swap here. (3) Thieves here may take half of the array with one compare-and-swap.
 * Against an owner that takes without a compare-and-swap only a single item is safe: the owner
 * could walk down into a range that a thief has read but not yet claimed.
 * The owner can take back the last item it put in (kbi_deque_take_back): the word top carries a tag
 * for that.
 *
 * The argument (after Le, Pop, Cohen and Nardelli, PPoPP 2013, on the original):
 * - A taker claims an item by moving top past it. Each move is a CAS of {tag, index} from the value
 *   that the taker read before it read the slots. So if the CAS succeeds, top and tag have not
 *   changed since.
 * - A taker reads the item that was put into the slot: it reads bottom with acquire, so it sees all
 *   slots that the owner filled below bottom. The owner reuses a slot only after it has read
 *   (acquire) a top that has passed the slot, and then the taker's CAS fails. The slots are read
 *   and written relaxed, because a late taker may read a slot while the owner reuses it; the taker
 *   then discards the value.
 * - top is read before bottom (acquire): bottom is then at least as new as top, so the count is not
 *   negative, unless a take-back is under way; then the count is 0 or the CAS fails on the tag.
 * - Take-back: the owner lowers bottom, then changes the tag by a CAS with release. A thief whose
 *   CAS comes later has read the new word (acquire), hence the lowered bottom; a thief that read
 *   the old word fails.
 * No store-load fence is needed: every claim is a read-modify-write of a single word. Indices have
 * 32 bits: a taker that stands still while 2^32 tasks and 2^32 tags go by would err.
 * Callers: sched/steal. */
#ifndef KBI_DEQUE_H
#define KBI_DEQUE_H

#include "base/atom.h"

enum { KBI_DEQUE_SLOTS = 8192 };

struct kbi_deque {
	a64 top KBI_ALIGNED(64);    /* tag << 32 | index; written by all takers, by CAS */
	a32 bottom KBI_ALIGNED(64); /* written by the owner, read by all */
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

/* Any thread: returns the number of items, as a hint. */
static inline uint32_t kbi_deque_count(const struct kbi_deque *d)
{
	int32_t n = (int32_t)(a_load_rlx(&d->bottom) - kbi_deque_index(a_load_rlx(&d->top)));

	return n > 0 ? (uint32_t)n : 0;
}

/* Owner: publishes `n` items already stored from bottom on. release: pairs with the acquire of
 * bottom in kbi_deque_look. */
static inline void kbi_deque_publish(struct kbi_deque *d, uint32_t n)
{
	a_store_rel(&d->bottom, a_load_rlx(&d->bottom) + n);
}

/* Owner: returns the number of free slots. acquire: pairs with the release in a taker's CAS
 * (kbi_deque_claim); the taker's reads are done. */
static inline uint32_t kbi_deque_room(const struct kbi_deque *d)
{
	return KBI_DEQUE_SLOTS - (a_load_rlx(&d->bottom) - kbi_deque_index(a_load_acq(&d->top)));
}

/* Owner: puts an item in. Returns false if the array is full. May run in parallel with any
 * taker. */
static inline bool kbi_deque_put(struct kbi_deque *d, void *item)
{
	if (!kbi_deque_room(d))
		return false;
	a_store_rlx(&d->slot[a_load_rlx(&d->bottom) % KBI_DEQUE_SLOTS], item);
	kbi_deque_publish(d, 1);
	return true;
}

/* Taker: reads top and returns the number of items from there on. */
static inline uint32_t kbi_deque_look(const struct kbi_deque *d, uint64_t *top)
{
	int32_t n;

	/* acquire: pairs with the last taker's CAS, or a take-back's: bottom is as new as top */
	*top = a_load_acq(&d->top);
	/* acquire: pairs with kbi_deque_publish */
	n = (int32_t)(a_load_acq(&d->bottom) - kbi_deque_index(*top));
	return n > 0 ? (uint32_t)n : 0;
}

/* Taker: returns the i-th item from top, which is valid only if the claim succeeds. */
static inline void *kbi_deque_peek(const struct kbi_deque *d, uint64_t top, uint32_t i)
{
	return a_load_rlx(&d->slot[(kbi_deque_index(top) + i) % KBI_DEQUE_SLOTS]);
}

/* Taker: claims the n items from top on. release: pairs with kbi_deque_room (our reads of the slots
 * are done); acquire: pairs with the CAS of earlier takers. */
static inline bool kbi_deque_claim(struct kbi_deque *d, uint64_t top, uint32_t n)
{
	return a_cas_acqrel(&d->top, &top, kbi_deque_advance(top, n));
}

/* Any thread: takes the oldest item. Returns NULL if there is none. */
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

/* Owner: takes back `item` and returns true if it is the last item put in and not claimed. */
static inline bool kbi_deque_take_back(struct kbi_deque *d, const void *item)
{
	uint32_t b = a_load_rlx(&d->bottom);
	uint64_t top = a_load_acq(&d->top); /* acquire: as in kbi_deque_look */

	if (b == kbi_deque_index(top) || a_load_rlx(&d->slot[(b - 1) % KBI_DEQUE_SLOTS]) != item)
		return false;
	a_store_rlx(&d->bottom, b - 1);
	do {
		if (kbi_deque_index(top) == b) {
			/* claimed meanwhile. release: as in kbi_deque_publish */
			a_store_rel(&d->bottom, b);
			return false;
		}
		/* Changes the tag. release: bottom is lowered before; pairs with the acquire in
		 * kbi_deque_look */
	} while (!a_cas_acqrel(&d->top, &top, top + ((uint64_t)1 << 32)));
	return true;
}

#endif
