/* io/slot.h - a place for each descriptor's number, with the queue of threads that wait for it.
 * Slots are made as numbers come up and are never freed. The lock is held for one system call at
 * most, inside np brackets, never across a switch.
 * Callers: call, engine, own, hold, ready, talk, posix/call_close. */
#ifndef KBI_SLOT_H
#define KBI_SLOT_H

#include "sched/spin.h"

struct kbi_hold;
struct kbi_ready;
struct kbi_task;

/* The engine's knowledge of a number. These are guesses: the number may have come to mean a
 * different file unseen. */
enum {
	KBI_SLOT_KNOWN = 1, /* the engine has been told of the number before */
	/* the engine reports each time that input has come, with or without waiters */
	KBI_SLOT_STAYS = 2,
	KBI_SLOT_NEWS = 4,  /* it reported input when no thread waited, since the last wait */
	/* it stays, and a receive that gets less than its room has taken all input */
	KBI_SLOT_STREAM = 8,
};

struct kbi_slot {
	a32 lock;
	a32 known; /* KBI_SLOT_ flags; under lock, also read without it */
	/* the queue of waiters; under lock, first is also read without it */
	aptr first;
	struct kbi_ready *last;
	aptr owner; /* the thread for which the engine stays; also read without the lock */
	struct kbi_hold *held; /* calls that hold the number's file: io/hold */
	a64 closed; /* kbi_hold_now at the last begin or end of a close; read without the lock, too */
	a32 closing;           /* number of closes that have begun; read without the lock, too */
	/* io/own: users of a private copy, 0: the number is the program's. Without the lock */
	a32 users;
	/* without the lock */
	a32 talk;   /* io/talk: the thread of the conversation, for the native calls */
	a8 made;    /* kbi_slot_make has counted the number */
	a8 spared;  /* waits in a row that were over before the engine was asked */
	/* number of conversation waits of a number known to the engine, modulo ASK (talk.c) */
	a8 waits;
} KBI_ALIGNED(KBI_CACHE_LINE);

/* Returns the slot of a number, made if need be. NULL: no such number is possible, or no memory. */
struct kbi_slot *kbi_slot_make(int fd);
enum { KBI_SLOT_PIECE = 16384, KBI_SLOT_PIECES = 4096 };
extern KBI_HIDDEN aptr kbi_slot_pieces[KBI_SLOT_PIECES];

/* Returns the slot of a number. NULL: no thread has waited for such a number yet. */
static inline struct kbi_slot *kbi_slot_find(int fd)
{
	struct kbi_slot *p;

	if (kbi_unlikely((unsigned)fd >= (unsigned)KBI_SLOT_PIECE * KBI_SLOT_PIECES))
		return NULL;
	/* acquire: pairs with the release in add_piece; the kernel has zeroed the piece */
	p = a_load_acq(&kbi_slot_pieces[(unsigned)fd / KBI_SLOT_PIECE]);
	return kbi_likely(p != NULL) ? &p[(unsigned)fd % KBI_SLOT_PIECE] : NULL;
}

/* All numbers for which slots were made are below this value. */
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
	/* release: pairs with the acquire in kbi_spin_lock_bit. The word has no further bits */
	a_store_rel(&s->lock, 0);
}

#endif
