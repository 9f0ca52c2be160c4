/* sync/mutex.h - what condition variables and the drop-in need of a mutex beyond kochab/sync.h.
 * Callers: sync/cond, posix. Where these functions run and switch: see mutex.c. */
#ifndef KBI_MUTEX_H
#define KBI_MUTEX_H

#include <kochab/sync.h>

#include "core/contain.h"
#include "sync/waitq.h"

/* Verdicts of a mutex. RETRY: the lock was free when the waiter was woken; it holds the word's WOKEN bit and
 * races for the lock. OWNED: the lock was handed over. */
enum kbi_mutex_verdict { KBI_MUTEX_RETRY = KBI_WNODE_GRANTED, KBI_MUTEX_OWNED, KBI_MUTEX_VERDICTS };

struct kbi_mutex_waiter {
	struct kbi_wnode n; /* first */
	kb_mutex_t *m;
	uint64_t since;     /* time of the first lost race, ns */
	uint8_t losses;     /* races lost */
	bool woken;         /* holds WOKEN */
	bool starving;      /* to be given the lock, under the queue lock */
};

/* The word. Everybody: CAS from a value without QLOCK; the holder of QLOCK, and a solo section: plain stores.
 *   LOCKED   held, or being handed over
 *   QLOCK    the queue is being worked on
 *   WAITERS  the queue is not empty
 *   WOKEN    a waiter has been woken and has neither got the lock nor queued itself again */
enum {
	KBI_MUTEX_LOCKED = 1,
	KBI_MUTEX_QLOCK = KBI_WAITQ_LOCK,
	KBI_MUTEX_WAITERS = KBI_WAITQ_SOME,
	KBI_MUTEX_WOKEN = 8,
	KBI_MUTEX_FLAGS = 0xff,
};

/* Above the flags, while it is LOCKED: its holder's name, the middle bits of its descriptor's address. Only for
 * core/contain and for looks from outside: any thread may unlock a normal mutex. The holder knows the word without a look
 * (doc/why/mutex.md). */
static inline uint32_t kbi_mutex_held_by(const struct kbi_task *self)
{
	_Static_assert(sizeof(struct kb_thread) == KBI_MUTEX_FLAGS + 1, "the lowest bits of its address are 0");
	return (uint32_t)(uintptr_t)self + KBI_MUTEX_LOCKED;
}

/* LOCKED, and no other flag. */
static inline bool kbi_mutex_is_only_locked(uint32_t word)
{
	return (uint8_t)word == KBI_MUTEX_LOCKED;
}

/* `left`, of a robust one: its holder was lost; and who held it then has not said that it is consistent. */
enum { KBI_MUTEX_WHOLE, KBI_MUTEX_LEFT, KBI_MUTEX_GONE };

/* ---- the common case, in line: a normal mutex that nobody waits for ------------------------------- */

/* true: the caller holds it now. false: nothing was done. self: kbi_self_raw(). */
static inline bool kbi_mutex_quick_lock(kb_mutex_t *m, const struct kbi_task *self)
{
	a32 *word = (a32 *)&m->word;
	uint32_t free = 0;
	bool is_free;

	if (kbi_unlikely(m->kind != KB_MUTEX_NORMAL || !self))
		return false;
	if (kbi_solo_enter(self)) {
		/* acquire: partner is the release below */
		is_free = a_zero32_acq(word);
		if (kbi_likely(is_free))
			a_store_rlx(word, kbi_mutex_held_by(self));
		kbi_solo_leave();
		return is_free;
	}
	/* acquire: partner is the release in unlock; and in kbi_waitq_unlock */
	return a_cas_acq(word, &free, kbi_mutex_held_by(self));
}

/* true: it is free now. false: nothing was done. */
static inline bool kbi_mutex_quick_unlock(kb_mutex_t *m, const struct kbi_task *self)
{
	a32 *word = (a32 *)&m->word;
	uint32_t held;
	bool is_held;

	if (kbi_unlikely(m->kind != KB_MUTEX_NORMAL || !self))
		return false;
	if (kbi_solo_enter(self)) {
		is_held = kbi_mutex_is_only_locked(a_load_rlx(word));
		/* release: partner is the acquire above, and whoever locks when solo has ended */
		if (kbi_likely(is_held))
			a_store_rel(word, 0);
		kbi_solo_leave();
		return is_held;
	}
	held = kbi_mutex_held_by(self);
	/* release: partner is the acquire in lock; and in kbi_waitq_lock */
	return a_cas_rel(word, &held, 0);
}

/* ---- the general one ----------------------------------------------------------------------------- */

/* Where the quick way has failed. */
KBI_SWITCHES int kbi_mutex_lock(kb_mutex_t *m, struct kbi_until until);
int kbi_mutex_trylock(kb_mutex_t *m);
int kbi_mutex_unlock(kb_mutex_t *m);

/* Goes on after w has got a verdict (in n.state) from m's queue; the caller then holds the word. For a
 * recursive or error-checking mutex kbi_mutex_resume follows. */
KBI_SWITCHES void kbi_mutex_finish(struct kbi_mutex_waiter *w);

/* Queues taken waiters (struct kbi_mutex_waiter, chained by next) for m; wakes the first if the lock is
 * free. Inside np brackets. */
void kbi_mutex_adopt(kb_mutex_t *m, struct kbi_wnode *chain);

/* Does the caller hold it? Of a mutex without owner: does anybody? */
bool kbi_mutex_is_held(kb_mutex_t *m, const struct kbi_task *self);
/* For a wait: gives up the held mutex however often it is locked. The result is for kbi_mutex_resume, which
 * follows when the word is held again. */
uint32_t kbi_mutex_suspend(kb_mutex_t *m);
void kbi_mutex_resume(kb_mutex_t *m, struct kbi_task *self, uint32_t count);
/* The caller has locked it: 0, EOWNERDEAD; or ENOTRECOVERABLE, and it is not locked. */
int kbi_mutex_settle(kb_mutex_t *m);
/* Locks the word alone, without owner and count. */
KBI_SWITCHES void kbi_mutex_lock_word(kb_mutex_t *m);
/* In the child of fork, before anybody else uses it: whoever waited or worked on the queue is not
 * there; who held it is the caller's business. */
void kbi_mutex_orphan(kb_mutex_t *m);

#endif
