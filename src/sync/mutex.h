/* sync/mutex.h - the part of mutexes, beyond kochab/sync.h, that condition
 * variables and the drop-in need.
 * Callers: io/call, sync/cond, posix. mutex.c says where these functions
 * run and which may switch. */
#ifndef KBI_MUTEX_H
#define KBI_MUTEX_H

#include <kochab/sync.h>

#include "core/contain.h"
#include "sync/waitq.h"

/* Verdicts of a mutex. RETRY: the lock was free when the waiter was woken; the waiter holds the
 * word's WOKEN bit and races for the lock. OWNED: the lock was handed over. */
enum kbi_mutex_verdict { KBI_MUTEX_RETRY = KBI_WNODE_GRANTED, KBI_MUTEX_OWNED, KBI_MUTEX_VERDICTS };

struct kbi_mutex_waiter {
	struct kbi_wnode n; /* first */
	kb_mutex_t *m;
	uint64_t since;     /* time of the first lost race, ns */
	uint8_t losses;     /* number of races lost */
	bool woken;         /* the waiter holds WOKEN */
	bool starving;      /* the next unlock hands the lock over; under the queue lock */
};

/* The word. Every thread changes it by CAS from a value without QLOCK; the holder of QLOCK and a
 * single-threaded section (core/single_threaded) use plain stores.
 *    LOCKED   held, or being handed over
 *    QLOCK    a thread works on the queue
 *    WAITERS  the queue is not empty
 *    WOKEN    a waiter has been woken and has neither got the lock nor queued itself again */
enum {
	KBI_MUTEX_LOCKED = 1,
	KBI_MUTEX_QLOCK = KBI_WAITQ_LOCK,
	KBI_MUTEX_WAITERS = KBI_WAITQ_SOME,
	KBI_MUTEX_WOKEN = 8,
	KBI_MUTEX_FLAGS = 0xff,
};

/* Returns the value of the word while self holds the mutex. Above the flags stands the holder's
 * name: the middle bits of its descriptor's address. Only core/contain and observers read the name:
 * any thread may unlock a normal mutex. The holder can compute the word without reading it
 * (doc/why/mutex.md). */
static inline uint32_t kbi_mutex_held_by(const struct kbi_task *self)
{
	_Static_assert(sizeof(struct kb_thread) == KBI_MUTEX_FLAGS + 1,
		"the lowest bits of its address are 0");
	return (uint32_t)(uintptr_t)self + KBI_MUTEX_LOCKED;
}

/* Returns whether LOCKED is set and no other flag. */
static inline bool kbi_mutex_is_only_locked(uint32_t word)
{
	return (uint8_t)word == KBI_MUTEX_LOCKED;
}

/* Values of `left`, of a robust mutex. LEFT: the holder was lost. GONE: the next holder unlocked
 * the mutex without marking it consistent. */
enum { KBI_MUTEX_WHOLE, KBI_MUTEX_LEFT, KBI_MUTEX_GONE };

/* ---- the common case, in line: a normal mutex that nobody waits for -------------------------- */

/* Locks the mutex in the common case. True: the caller holds the mutex now. False: nothing was
 * done. self: kbi_self_raw(). */
static inline bool kbi_mutex_quick_lock(kb_mutex_t *m, const struct kbi_task *self)
{
	a32 *word = (a32 *)&m->word;
	uint32_t free = 0;
	bool is_free;

	if (kbi_unlikely(m->kind != KB_MUTEX_NORMAL || !self))
		return false;
	if (kbi_single_threaded_enter(self)) {
		/* acquire: pairs with the release in kbi_mutex_quick_unlock */
		is_free = a_zero32_acq(word);
		if (kbi_likely(is_free))
			a_store_rlx(word, kbi_mutex_held_by(self));
		kbi_single_threaded_leave();
		return is_free;
	}
	/* acquire: pairs with the release in kbi_mutex_quick_unlock and in kbi_waitq_unlock */
	return a_cas_acq(word, &free, kbi_mutex_held_by(self));
}

/* Unlocks the mutex in the common case. True: the mutex is free now. False: nothing was done. */
static inline bool kbi_mutex_quick_unlock(kb_mutex_t *m, const struct kbi_task *self)
{
	a32 *word = (a32 *)&m->word;
	uint32_t held;
	bool is_held;

	if (kbi_unlikely(m->kind != KB_MUTEX_NORMAL || !self))
		return false;
	if (kbi_single_threaded_enter(self)) {
		is_held = kbi_mutex_is_only_locked(a_load_rlx(word));
		/* release: pairs with the acquire in kbi_mutex_quick_lock, also after
		 * the single-threaded phase has ended */
		if (kbi_likely(is_held))
			a_store_rel(word, 0);
		kbi_single_threaded_leave();
		return is_held;
	}
	held = kbi_mutex_held_by(self);
	/* release: pairs with the acquire in kbi_mutex_quick_lock and in kbi_waitq_lock */
	return a_cas_rel(word, &held, 0);
}

/* ---- the general case ------------------------------------------------------------------------ */

/* Lock, try and unlock after the inline functions above have failed. */
KBI_SWITCHES int kbi_mutex_lock(kb_mutex_t *m, struct kbi_until until);
int kbi_mutex_trylock(kb_mutex_t *m);
int kbi_mutex_unlock(kb_mutex_t *m);

/* Goes on after w has got a verdict (in n.state) from m's queue. The caller then holds the word.
 * For a recursive or error-checking mutex kbi_mutex_resume follows. */
KBI_SWITCHES void kbi_mutex_finish(struct kbi_mutex_waiter *w);

/* Queues taken waiters (struct kbi_mutex_waiter, chained by next) for m. Wakes the first waiter if
 * the lock is free. Inside np brackets. */
void kbi_mutex_adopt(kb_mutex_t *m, struct kbi_wnode *chain);

/* Returns whether the caller holds the mutex; for a mutex without owner,
 * whether any thread does. */
bool kbi_mutex_is_held(kb_mutex_t *m, const struct kbi_task *self);
/* Releases the held mutex for a wait, however often it is locked. The result is for
 * kbi_mutex_resume, which follows when the caller holds the word again. */
uint32_t kbi_mutex_suspend(kb_mutex_t *m);
void kbi_mutex_resume(kb_mutex_t *m, struct kbi_task *self, uint32_t count);
/* Ends a lock operation of the caller. Returns 0; EOWNERDEAD; or ENOTRECOVERABLE, and
 * the mutex is not locked. */
int kbi_mutex_settle(kb_mutex_t *m);
/* Locks the word alone, without owner and count. */
KBI_SWITCHES void kbi_mutex_lock_word(kb_mutex_t *m);
/* Resets the queue in the child of fork, before any other use: the threads that waited or worked on
 * the queue do not exist in the child. The holder is the caller's business. */
void kbi_mutex_orphan(kb_mutex_t *m);

#endif
