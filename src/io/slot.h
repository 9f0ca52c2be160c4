/* io/slot.h - a place for each descriptor's number, with the queue of threads that wait for it.
 * Slots are made as numbers come up and never go away. The lock is held for one call of the kernel at most, inside np
 * brackets, never across a switch. Callers: call, engine, own, hold, ready. */
#ifndef KBI_SLOT_H
#define KBI_SLOT_H

#include "core/spin.h"

struct kbi_hold;
struct kbi_ready;
struct kbi_task;

/* What the engine has been told of a number. Guesses: another file may have come under it unseen. */
enum {
	KBI_SLOT_KNOWN = 1, /* something, before */
	KBI_SLOT_STAYS = 2, /* it tells each time that something has come in, whether anybody waits or not; */
	KBI_SLOT_NEWS = 4,  /* and did so when nobody waited, since the last wait */
	KBI_SLOT_STREAM = 8, /* it stays, and a receive that gets less than it has room for has taken all there was */
};

struct kbi_slot {
	a32 lock;
	a32 known; /* under lock; others peep */
	/* under lock; others peep at first */
	aptr first;
	struct kbi_ready *last;
	aptr owner; /* whom the engine was told to stay for; others peep */
	struct kbi_hold *held; /* calls that are about the number's file: io/hold */
	a64 closed;            /* kbi_hold_now at the last begin or end of a close; read without the lock, too */
	a32 closing;           /* closes that have begun; read without the lock, too */
	a32 users;             /* io/own: 0: the number is the program's. Without the lock */
	/* without the lock */
	a32 talk;   /* io/talk: with which thread, for the native calls */
	a8 made;    /* kbi_slot_make knows of it */
	a8 spared;  /* how many waits in a row were over before the engine was asked; */
	a8 waits;   /* and how many there were */
} KBI_ALIGNED(KBI_CACHE_LINE);

/* NULL: no such number is possible, or no memory. */
struct kbi_slot *kbi_slot_make(int fd);
enum { KBI_SLOT_PIECE = 16384, KBI_SLOT_PIECES = 4096 };
extern KBI_HIDDEN aptr kbi_slot_pieces[KBI_SLOT_PIECES];

/* NULL: nobody has waited for such a number yet. */
static inline struct kbi_slot *kbi_slot_find(int fd)
{
	struct kbi_slot *p;

	if (kbi_unlikely((unsigned)fd >= (unsigned)KBI_SLOT_PIECE * KBI_SLOT_PIECES))
		return NULL;
	/* acquire: partner is the release in add_piece; the kernel has zeroed it */
	p = a_load_acq(&kbi_slot_pieces[(unsigned)fd / KBI_SLOT_PIECE]);
	return kbi_likely(p != NULL) ? &p[(unsigned)fd % KBI_SLOT_PIECE] : NULL;
}

/* Numbers that slots were made for are below it. */
extern KBI_HIDDEN a32 kbi_slot_numbers;
static inline int kbi_slot_limit(void)
{
	return (int)a_load_rlx(&kbi_slot_numbers);
}

static inline void kbi_slot_lock(struct kbi_slot *s)
{
	kbi_spin_lock_bit(&s->lock, 1);
}

static inline void kbi_slot_unlock(struct kbi_slot *s)
{
	/* release: partner is the acquire in kbi_spin_lock_bit. The word has no other bits */
	a_store_rel(&s->lock, 0);
}

#endif
