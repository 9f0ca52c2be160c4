/* sync/mutex.c - mutual exclusion: one CAS to lock, one to unlock, no queue
 * touched, while no thread waits.
 *
 * Barging with an end: unlock frees the word and wakes the first waiter, which races for the lock
 * with any thread that comes by (so that a running thread need not wait for a sleeping thread).
 * While that waiter is on its way (WOKEN), no further waiter is woken. The next unlock hands the
 * lock to a waiter that has lost too often or too long. Why, and what it costs: doc/why/mutex.md.
 * Callers: all rooms above. Calls waitq, lost. Lock may switch; unlock never does. */
#include "sync/mutex.h"

#include <errno.h>

#include "core/vp.h"
#include "os/sys.h"
#include "sync/lost.h"

enum {
	LOCKED = KBI_MUTEX_LOCKED,
	QLOCK = KBI_MUTEX_QLOCK,
	WAITERS = KBI_MUTEX_WAITERS,
	WOKEN = KBI_MUTEX_WOKEN,
	HELD = ~(uint32_t)KBI_MUTEX_FLAGS | KBI_MUTEX_LOCKED, /* LOCKED and the holder's name */
};

enum {
	LOSSES_MAX = 16,          /* races a woken waiter may lose before the lock is handed to it */
	PATIENCE_NS = 1000 * 1000, /* or this time after its first lost race */
	SPIN_ROUNDS = 10,         /* reads of the word before a thread sleeps; the pauses double */
	SPIN_PAUSE_MAX = 64,      /* longest pause, in kbi_cpu_relax calls */
};

static inline a32 *mutex_word(kb_mutex_t *m) { return (a32 *)&m->word; }
static inline a32 *mutex_owner(kb_mutex_t *m) { return (a32 *)&m->owner; }
static inline struct kbi_waitq *mutex_queue(kb_mutex_t *m) { return (struct kbi_waitq *)&m->head; }
static inline uint32_t owner_id(const struct kbi_task *self) { return self->index + 1; }

static inline bool is_robust(const kb_mutex_t *m) { return m->kind & KB_MUTEX_ROBUST; }

enum { KIND_ADAPTIVE = 3 }; /* glibc's number */

/* Returns whether the mutex has no owner. The drop-in keeps further flags
 * in the upper bits of kind. */
static inline bool is_plain(const kb_mutex_t *m)
{
	return !is_robust(m) && ((m->kind & 3) == KB_MUTEX_NORMAL || (m->kind & 3) == KIND_ADAPTIVE);
}

/* ---- the word -------------------------------------------------------------------------------- */

/* Takes the lock if it is free. given: bits that the caller holds and gives back (WOKEN). */
static inline bool grab_mutex(kb_mutex_t *m, const struct kbi_task *self, uint32_t given)
{
	uint32_t old = a_load_rlx(mutex_word(m));

	while (!(old & (LOCKED | QLOCK)))
		/* acquire: pairs with the release in unlock_word's CAS and in kbi_waitq_unlock */
		if (kbi_likely(a_cas_acq(mutex_word(m), &old,
				(old & ~given) | kbi_mutex_held_by(self))))
			return true;
	return false;
}

/* Returns whether the owner may be running on another processor: then some 100 ns of looking pay.
 * Kernel threads that are no VPs may be many more than processors, and the holder of the mutex most
 * often waits for a processor. They look only if the mutex says so, as in glibc. */
static inline bool is_parallel(const kb_mutex_t *m, const struct kbi_task *self)
{
	return self->vp ? kbi_vp_n != 1 : (m->kind & 3) == KIND_ADAPTIVE;
}

/* Tries again after a failed grab_mutex. Each look takes the cache line from the holder. */
static bool spin_for_mutex(kb_mutex_t *m, const struct kbi_task *self, uint32_t given)
{
	unsigned pause = 2;

	if (!is_parallel(m, self))
		return false;
	for (int i = 0; i < SPIN_ROUNDS; i++) {
		for (unsigned k = 0; k < pause; k++)
			kbi_cpu_relax();
		if (grab_mutex(m, self, given))
			return true;
		if (pause < SPIN_PAUSE_MAX)
			pause *= 2;
	}
	return false;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Takes the lock (true) or queues w: at the end, or in front if w had been woken before. */
static bool take_or_queue(struct kbi_mutex_waiter *w)
{
	kb_mutex_t *m = w->m;
	struct kbi_task *self = w->n.task;
	uint32_t word, taken;

	kbi_np_enter(self);
	word = kbi_waitq_lock(mutex_word(m));
	if (w->woken)
		word &= ~(uint32_t)WOKEN;
	taken = !(word & LOCKED);
	if (taken) {
		word |= kbi_mutex_held_by(self);
	} else {
		a_store_rlx(&w->n.state, KBI_WNODE_QUEUED);
		if (w->woken)
			kbi_waitq_prepend(mutex_queue(m), &w->n);
		else
			kbi_waitq_append(mutex_queue(m), &w->n);
		word |= WAITERS;
	}
	kbi_waitq_unlock(mutex_word(m), word);
	kbi_np_leave(self);
	return taken;
}

/* Ends a wait; perhaps a handler of the program has unwound the thread. */
static bool leave_mutex_queue(void *m, struct kbi_wnode *n)
{
	bool queued = kbi_waitq_leave(mutex_word(m), mutex_queue(m), n);

	if (kbi_unlikely(kbi_contain_on))
		kbi_lost_say_no_more(n->task);
	return queued;
}

/* Notes that a woken waiter has lost a race. */
static void note_lost_race(struct kbi_mutex_waiter *w)
{
	uint64_t now = kbi_sys_now();

	if (w->losses++ == 0)
		w->since = now;
	w->starving = w->losses >= LOSSES_MAX || now - w->since > PATIENCE_NS;
}

/* Acts on the verdict of w. True: w holds the lock. False: w is queued again. */
static bool act_on_verdict(struct kbi_mutex_waiter *w)
{
	if (a_load_rlx(&w->n.state) == KBI_MUTEX_OWNED)
		return true;
	w->woken = true;
	if (grab_mutex(w->m, w->n.task, WOKEN) || spin_for_mutex(w->m, w->n.task, WOKEN))
		return true;
	note_lost_race(w);
	return take_or_queue(w);
}

/* ---- a holder that was lost ------------------------------------------------------------------ */

static int unlock_slow(kb_mutex_t *m, bool lost);

static struct kb_thread *lost_holder(uint32_t word)
{
	uint32_t off =
		(word & ~(uint32_t)KBI_MUTEX_FLAGS) - (uint32_t)(uintptr_t)kbi_descriptor_table.at;

	return word & LOCKED ? kbi_lost_at(off / sizeof(struct kb_thread)) : NULL;
}

/* Prepares the unlock of a mutex in place of its lost holder. Under the queue lock. False: the
 * holder is not lost. */
static bool prepare_lost_unlock(kb_mutex_t *m, uint32_t word)
{
	struct kb_thread *t = lost_holder(word);

	if (!t)
		return false;
	if (!is_robust(m))
		kbi_lost_complain("mutex", m, t);
	if (is_robust(m) && m->left != KBI_MUTEX_GONE)
		m->left = KBI_MUTEX_LEFT;
	m->count = 0;
	a_store_rlx(mutex_owner(m), 0);
	return true;
}

static bool take_mutex_from_lost(kb_mutex_t *m)
{
	return lost_holder(a_load_rlx(mutex_word(m))) && unlock_slow(m, true) == 0;
}

/* Gives the mutex up because a thread waits for it, if the lost thread t holds it. */
static void on_mutex_wanted(void *m, const struct kb_thread *t)
{
	if (lost_holder(a_load_rlx(mutex_word(m))) == t)
		take_mutex_from_lost(m);
}

static const struct kbi_lost_how how = { on_mutex_wanted, NULL };

static KBI_NOINLINE void announce_mutex_wait_slow(kb_mutex_t *m, struct kbi_task *self)
{
	kbi_lost_say(self, m, KBI_LOST_MUTEX, &how);
	a_fence_sc(); /* sc: pairs with the fence in give_up_held_objects of sync/lost */
	take_mutex_from_lost(m);
}

/* Announces the wait before each sleep: a handler that ran meanwhile may have waited for a
 * different object. */
static inline void announce_mutex_wait(kb_mutex_t *m, struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		announce_mutex_wait_slow(m, self);
}

static inline void end_mutex_wait(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		kbi_lost_say_no_more(self);
}

/* ---- the slow way ---------------------------------------------------------------------------- */

/* Locks after a grab_mutex that failed. */
static KBI_NOINLINE int lock_slow(kb_mutex_t *m, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_mutex_waiter w = { .n.task = self, .m = m };
	bool held = spin_for_mutex(m, self, 0) || take_or_queue(&w);
	int rc = 0;

	while (!held && !rc) {
		announce_mutex_wait(m, self);
		rc = kbi_waitq_await(&w.n, until, leave_mutex_queue, m);
		held = !rc && act_on_verdict(&w);
	}
	end_mutex_wait(self);
	return rc;
}

void kbi_mutex_finish(struct kbi_mutex_waiter *w)
{
	while (!act_on_verdict(w)) {
		announce_mutex_wait(w->m, w->n.task);
		kbi_waitq_await(&w->n, kbi_waitq_until(KBI_FOREVER), leave_mutex_queue, w->m);
	}
	end_mutex_wait(w->n.task);
}

void kbi_mutex_lock_word(kb_mutex_t *m)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!kbi_mutex_quick_lock(m, self) && !grab_mutex(m, self, 0))
		lock_slow(m, kbi_waitq_until(KBI_FOREVER));
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Unlocks where a waiter may have to be woken: under the queue lock. lost: the caller acts for a
 * lost holder. EPERM: the mutex is not locked, or, with lost, its holder is not lost. */
static KBI_NOINLINE int unlock_slow(kb_mutex_t *m, bool lost)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_wnode *n = NULL;
	bool give = false;
	uint32_t word;
	int rc = 0;

	kbi_np_enter(self);
	word = kbi_waitq_lock(mutex_word(m));
	if (!(word & LOCKED) || (lost && !prepare_lost_unlock(m, word))) {
		rc = EPERM;
	} else if ((word & (WAITERS | WOKEN)) != WAITERS) {
		word &= ~(uint32_t)HELD;
	} else {
		n = kbi_waitq_take_first(mutex_queue(m));
		word = (word & ~(uint32_t)WAITERS) | kbi_waitq_some(mutex_queue(m));
		give = ((struct kbi_mutex_waiter *)n)->starving;
		word = (word & ~(uint32_t)HELD) | (give ? kbi_mutex_held_by(n->task) : WOKEN);
	}
	kbi_waitq_unlock(mutex_word(m), word);
	if (give)
		kbi_waitq_grant_next(n, KBI_MUTEX_OWNED);
	else if (n)
		kbi_waitq_grant(n, KBI_MUTEX_RETRY);
	kbi_np_leave(self);
	return rc;
}

static inline int unlock_word(kb_mutex_t *m)
{
	uint32_t old = a_load_rlx(mutex_word(m));

	while (!(old & QLOCK) && (old & LOCKED) && (old & (WAITERS | WOKEN)) != WAITERS)
		/* release: pairs with the acquire in grab_mutex and in kbi_waitq_lock */
		if (kbi_likely(a_cas_rel(mutex_word(m), &old, old & ~(uint32_t)HELD)))
			return 0;
	return unlock_slow(m, false);
}

/* Announces the waits of a chain, before its nodes are queued. */
static void announce_chain_waits(kb_mutex_t *m, struct kbi_wnode *chain)
{
	for (struct kbi_wnode *n = chain; n; n = n->next)
		kbi_lost_say(n->task, m, KBI_LOST_MUTEX, &how);
	a_fence_sc(); /* sc: pairs with the fence in give_up_held_objects of sync/lost */
}

void kbi_mutex_adopt(kb_mutex_t *m, struct kbi_wnode *chain)
{
	struct kbi_wnode *first = NULL;
	uint32_t word;

	if (kbi_unlikely(kbi_contain_on))
		announce_chain_waits(m, chain);
	word = kbi_waitq_lock(mutex_word(m));
	if (kbi_unlikely(kbi_contain_on) && prepare_lost_unlock(m, word))
		word &= ~(uint32_t)HELD;
	if (!(word & (LOCKED | WOKEN))) {
		first = chain;
		chain = chain->next;
		word |= WOKEN;
	}
	while (chain) {
		struct kbi_wnode *next = chain->next;

		kbi_waitq_append(mutex_queue(m), chain);
		chain = next;
	}
	kbi_waitq_unlock(mutex_word(m), word | kbi_waitq_some(mutex_queue(m)));
	if (first)
		kbi_waitq_grant(first, KBI_MUTEX_RETRY);
}

/* ---- kinds with an owner --------------------------------------------------------------------- */

/* Returns whether the caller is the owner. Only the owner itself ever sees its
 * own number in the field. */
static inline bool is_mutex_owner(kb_mutex_t *m, const struct kbi_task *self)
{
	return a_load_rlx(mutex_owner(m)) == owner_id(self);
}

/* Locks a mutex that the caller holds already. Returns 0 if its kind allows that, EAGAIN if the
 * count is at its limit, else held_error. */
static int lock_mutex_again(kb_mutex_t *m, int held_error)
{
	if ((m->kind & 3) != KB_MUTEX_RECURSIVE)
		return held_error;
	if (m->count == UINT32_MAX)
		return EAGAIN;
	m->count++;
	return 0;
}

static KBI_NOINLINE int lock_owned(kb_mutex_t *m, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	int rc;

	if (is_mutex_owner(m, self))
		return lock_mutex_again(m, EDEADLK);
	rc = grab_mutex(m, self, 0) ? 0 : lock_slow(m, until);
	if (rc)
		return rc;
	kbi_mutex_resume(m, self, 0);
	return kbi_mutex_settle(m);
}

static KBI_NOINLINE int unlock_owned(kb_mutex_t *m)
{
	if (!is_mutex_owner(m, kbi_waitq_self()))
		return EPERM;
	if (m->count > 0) {
		m->count--;
		return 0;
	}
	a_store_rlx(mutex_owner(m), 0);
	if (is_robust(m) && m->left)
		m->left = KBI_MUTEX_GONE;
	return unlock_word(m);
}

int kbi_mutex_settle(kb_mutex_t *m)
{
	if (!is_robust(m) || kbi_likely(m->left == KBI_MUTEX_WHOLE))
		return 0;
	if (m->left == KBI_MUTEX_LEFT)
		return EOWNERDEAD;
	unlock_owned(m);
	return ENOTRECOVERABLE;
}

int kb_mutex_consistent(kb_mutex_t *m)
{
	if (!is_robust(m) || m->left != KBI_MUTEX_LEFT || !is_mutex_owner(m, kbi_waitq_self()))
		return EINVAL;
	m->left = KBI_MUTEX_WHOLE;
	return 0;
}

bool kbi_mutex_is_held(kb_mutex_t *m, const struct kbi_task *self)
{
	return is_plain(m) ? a_load_rlx(mutex_word(m)) & LOCKED : is_mutex_owner(m, self);
}

uint32_t kbi_mutex_suspend(kb_mutex_t *m)
{
	uint32_t count = 0;

	if (kbi_unlikely(!is_plain(m))) {
		count = m->count;
		m->count = 0;
		a_store_rlx(mutex_owner(m), 0);
	}
	if (!kbi_mutex_quick_unlock(m, kbi_self_raw()))
		unlock_word(m);
	return count;
}

void kbi_mutex_resume(kb_mutex_t *m, struct kbi_task *self, uint32_t count)
{
	if (kbi_likely(is_plain(m)))
		return;
	a_store_rlx(mutex_owner(m), owner_id(self));
	m->count = count;
}

void kbi_mutex_orphan(kb_mutex_t *m)
{
	m->waits = 0;
	*mutex_queue(m) = (struct kbi_waitq){ NULL, NULL };
	/* threads that need not wait lock and unlock the mutex meanwhile */
	a_and_rlx(mutex_word(m), HELD);
}

/* ---- the public functions -------------------------------------------------------------------- */

int kb_mutex_init(kb_mutex_t *m, enum kb_mutex_kind kind)
{
	if (((unsigned)kind & ~(unsigned)KB_MUTEX_ROBUST) > KB_MUTEX_ERRORCHECK)
		return EINVAL;
	*m = (kb_mutex_t)KB_MUTEX_INIT;
	m->kind = kind;
	return 0;
}

int kb_mutex_destroy(kb_mutex_t *m)
{
	return a_load_rlx(mutex_word(m)) || *(const volatile uint32_t *)&m->waits ? EBUSY : 0;
}

int kbi_mutex_lock(kb_mutex_t *m, struct kbi_until until)
{
	if (kbi_unlikely(!kbi_self_raw()))
		kbi_single_threaded_end();
	if (kbi_unlikely(!is_plain(m)))
		return lock_owned(m, until);
	return kbi_likely(grab_mutex(m, kbi_waitq_self(), 0)) ? 0 : lock_slow(m, until);
}

int kb_mutex_lock(kb_mutex_t *m)
{
	return kbi_mutex_quick_lock(m, kbi_self_raw()) ? 0 :
		kbi_mutex_lock(m, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_mutex_timedlock(kb_mutex_t *m, uint64_t deadline)
{
	return kbi_mutex_quick_lock(m, kbi_self_raw()) ? 0 :
		kbi_mutex_lock(m, kbi_waitq_until_handling(deadline));
}

int kbi_mutex_trylock(kb_mutex_t *m)
{
	struct kbi_task *self;

	if (kbi_unlikely(!kbi_self_raw()))
		kbi_single_threaded_end();
	self = kbi_waitq_self();
	if (kbi_unlikely(!is_plain(m)) && is_mutex_owner(m, self))
		return lock_mutex_again(m, EBUSY);
	if (!grab_mutex(m, self, 0) &&
			!(kbi_contain_on && take_mutex_from_lost(m) && grab_mutex(m, self, 0)))
		return EBUSY;
	kbi_mutex_resume(m, self, 0);
	return kbi_mutex_settle(m);
}

int kb_mutex_trylock(kb_mutex_t *m)
{
	return kbi_mutex_quick_lock(m, kbi_self_raw()) ? 0 : kbi_mutex_trylock(m);
}

int kbi_mutex_unlock(kb_mutex_t *m)
{
	if (kbi_unlikely(!kbi_self_raw()))
		kbi_single_threaded_end();
	return kbi_likely(is_plain(m)) ? unlock_word(m) : unlock_owned(m);
}

int kb_mutex_unlock(kb_mutex_t *m)
{
	return kbi_mutex_quick_unlock(m, kbi_self_raw()) ? 0 : kbi_mutex_unlock(m);
}
