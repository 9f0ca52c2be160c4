/* sync/cond.c - condition variables. A signal takes one thread that waits at that moment; later
 * waiters cannot steal the signal. A broadcast moves the waiters to the mutex's queue, so that they
 * do not all wake to fight for the mutex.
 *
 * A timed waiter that gives up must not touch the condition variable once it has been signalled
 * (the broadcaster may destroy the object at once, POSIX pthread_cond_destroy). So signal and
 * time-out race on the node's own state, by CAS, before the queue lock is asked for. A node that is
 * LEAVING stays linked until its thread has unlinked it, and kb_cond_destroy waits for that.
 * Callers: all rooms above. Calls mutex, waitq. Waiting may switch;
 * signal and broadcast never do. */
#include "sync/cond.h"

#include <errno.h>

#include "os/sys.h"
#include "sync/mutex.h"

/* Node states beside the mutex's verdicts. SIGNALLED: a verdict, the waiter now takes the mutex.
 * LEAVING: set by a waiter that gives up. */
enum { SIGNALLED = KBI_MUTEX_VERDICTS, LEAVING };

struct waiter {
	struct kbi_mutex_waiter w; /* first; w.m NULL: not a kb_mutex_t, the waiter is never moved */
	bool may_leave;            /* constant: signal and time-out race for the state by CAS */
};

static inline a32 *cond_word(kb_cond_t *c) { return (a32 *)&c->word; }
static inline struct kbi_waitq *cond_queue(kb_cond_t *c) { return (struct kbi_waitq *)&c->head; }

/* ---- waking ---------------------------------------------------------------------------------- */

/* Decides for a wake-up of this waiter. False: the waiter has given up. */
static inline bool claim_cond_waiter(struct kbi_wnode *n)
{
	uint32_t queued = KBI_WNODE_QUEUED;

	if (((struct waiter *)n)->may_leave)
		/* relaxed: all that the waiter may read comes with the verdict */
		return a_cas_rlx(&n->state, &queued, KBI_WNODE_TAKEN);
	a_store_rlx(&n->state, KBI_WNODE_TAKEN);
	return true;
}

/* Unlinks up to max waiters, in order. Returns their chain. Under the queue lock. */
static struct kbi_wnode *claim_some(struct kbi_waitq *q, unsigned max)
{
	struct kbi_wnode *n = q->head, *first = NULL, **end = &first;

	while (n && max > 0) {
		struct kbi_wnode *next = n->next;

		if (claim_cond_waiter(n)) {
			kbi_waitq_remove(q, n);
			n->next = NULL;
			*end = n;
			end = &n->next;
			max--;
		}
		n = next;
	}
	return first;
}

static struct kbi_wnode *claim_locked(kb_cond_t *c, unsigned max)
{
	struct kbi_wnode *chain;

	kbi_waitq_lock(cond_word(c));
	chain = claim_some(cond_queue(c), max);
	kbi_waitq_unlock(cond_word(c), kbi_waitq_some(cond_queue(c)));
	return chain;
}

/* Takes the first waiter, NULL if there is none. In a single-threaded section no waiter is on its
 * way out: a thread leaves inside np brackets, which end before another thread runs. */
static inline struct kbi_wnode *claim_alone(kb_cond_t *c)
{
	struct kbi_waitq *q = cond_queue(c);
	struct kbi_wnode *n = q->head, *next;

	if (kbi_unlikely(!n))
		return NULL;
	next = n->next;
	q->head = next;
	*(next ? (void **)&next->prev : &q->tail) = NULL;
	a_store_rlx(&n->state, KBI_WNODE_TAKEN);
	/* release: pairs with the acquire in kbi_waitq_lock and enter_alone */
	a_store_rel(cond_word(c), next ? KBI_WAITQ_SOME : 0);
	return n;
}

/* Hands the waiters of a chain to their mutexes; successive waiters of a mutex together. */
static void move_to_mutex(struct kbi_wnode *chain)
{
	while (chain) {
		kb_mutex_t *m = ((struct kbi_mutex_waiter *)chain)->m;
		struct kbi_wnode *last = chain, *rest;

		while (last->next && ((struct kbi_mutex_waiter *)last->next)->m == m)
			last = last->next;
		rest = last->next;
		last->next = NULL;
		if (m)
			kbi_mutex_adopt(m, chain);
		else
			kbi_waitq_grant_all(chain, SIGNALLED);
		chain = rest;
	}
}

/* Returns whether no thread waits. The function sees every waiter that queued itself before this
 * call with the mutex held: its store of the word came before its unlock of the mutex, and the
 * caller made its change after a lock of that mutex. So a relaxed load is enough. */
static inline bool has_no_waiter(kb_cond_t *c)
{
	return !(a_load_rlx(cond_word(c)) & KBI_WAITQ_SOME);
}

int kbi_cond_signal(kb_cond_t *c)
{
	struct kbi_task *self;
	struct kbi_wnode *n;

	if (has_no_waiter(c))
		return 0;
	self = kbi_waitq_self();
	kbi_np_enter(self);
	if (kbi_single_threaded_enter(self)) {
		n = claim_alone(c);
		kbi_single_threaded_leave();
	} else {
		n = claim_locked(c, 1);
	}
	if (kbi_likely(n != NULL))
		kbi_waitq_grant_from(self, n, SIGNALLED);
	kbi_np_leave(self);
	return 0;
}

int kb_cond_signal(kb_cond_t *c)
{
	return kbi_cond_signal(c);
}

int kb_cond_broadcast(kb_cond_t *c)
{
	struct kbi_task *self;

	if (has_no_waiter(c))
		return 0;
	self = kbi_waitq_self();
	kbi_np_enter(self);
	move_to_mutex(claim_locked(c, UINT32_MAX));
	kbi_np_leave(self);
	return 0;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void enter_cond_queue(kb_cond_t *c, struct waiter *w)
{
	kbi_waitq_lock(cond_word(c));
	kbi_waitq_append(cond_queue(c), &w->w.n);
	kbi_waitq_unlock(cond_word(c), KBI_WAITQ_SOME);
}

static void unlink_locked(kb_cond_t *c, struct kbi_wnode *n)
{
	kbi_waitq_lock(cond_word(c));
	kbi_waitq_remove(cond_queue(c), n);
	kbi_waitq_unlock(cond_word(c), kbi_waitq_some(cond_queue(c)));
}

static bool leave_cond_queue(void *c, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	uint32_t queued = KBI_WNODE_QUEUED;
	bool left;

	kbi_np_enter(self);
	left = a_cas_rlx(&n->state, &queued, LEAVING);
	if (left)
		unlink_locked(c, n);
	kbi_np_leave(self);
	return left;
}

static inline bool can_end(struct kbi_until until)
{
	return until.deadline != KBI_FOREVER || until.stop;
}

/* Queues w and unlocks the mutex. False: w is queued, but the mutex needs the general
 * unlock. In a single-threaded section. */
static inline bool enter_alone(kb_cond_t *c, struct waiter *w)
{
	a32 *lock = (a32 *)&w->w.m->word;

	/* acquire: pairs with the release in claim_alone and kbi_waitq_unlock. The release store below
	 * pairs with the acquire in kbi_waitq_lock. */
	(void)a_load_acq(cond_word(c));
	kbi_waitq_append(cond_queue(c), &w->w.n);
	a_store_rel(cond_word(c), KBI_WAITQ_SOME);
	if (kbi_unlikely(w->w.m->kind != KB_MUTEX_NORMAL ||
			!kbi_mutex_is_only_locked(a_load_rlx(lock))))
		return false;
	/* release: pairs with the acquire in kbi_mutex_quick_lock */
	a_store_rel(lock, 0);
	return true;
}

/* Queues w, unlocks the mutex. Returns the number of locks beyond the first. */
static inline uint32_t enter_and_unlock(kb_cond_t *c, struct waiter *w)
{
	bool done;

	if (kbi_single_threaded_enter(w->w.n.task)) {
		done = enter_alone(c, w);
		kbi_single_threaded_leave();
		if (kbi_likely(done))
			return 0;
	} else {
		enter_cond_queue(c, w);
	}
	return kbi_mutex_suspend(w->w.m);
}

/* Returns whether the mutex has woken the waiter or has been handed to it. A thread that is unwound
 * must act on this verdict, too, because no further waiter is woken meanwhile. */
static inline bool has_mutex_verdict(const struct waiter *w)
{
	return a_load_rlx(&w->w.n.state) < KBI_MUTEX_VERDICTS;
}

static KBI_NOINLINE int relock_cond_mutex(struct waiter *w, int rc, uint32_t count)
{
	int left;

	if (has_mutex_verdict(w))
		kbi_mutex_finish(&w->w);
	else
		kbi_mutex_lock_word(w->w.m);
	kbi_mutex_resume(w->w.m, w->w.n.task, count);
	w->w.m->waits--;
	left = kbi_mutex_settle(w->w.m);
	return left ? left : rc;
}

/* A wait. A thread that is unwound while it waits gets the mutex again for the
 * frames to which it is unwound. */
struct hold {
	struct waiter *w;
	uint32_t count;
	bool over;
};

static inline void relock_if_unwound(struct hold *h)
{
	if (kbi_unlikely(!h->over))
		relock_cond_mutex(h->w, ECANCELED, h->count);
}

static inline __attribute__((always_inline)) int wait_on_cond(kb_cond_t *c, kb_mutex_t *m,
	struct kbi_until until, bool asked)
{
	struct kbi_task *self = kbi_waitq_self();
	struct waiter w = { .w = { .n.task = self, .m = m }, .may_leave = can_end(until) };
	struct hold h __attribute__((cleanup(relock_if_unwound))) = { .w = &w };
	int rc;

	if (kbi_unlikely(!kbi_mutex_is_held(m, self))) {
		h.over = true;
		return EPERM;
	}
	kbi_np_enter(self);
	m->waits++;
	h.count = enter_and_unlock(c, &w);
	kbi_np_leave(self);
	rc = asked ? kbi_waitq_await_asked(&w.w.n, until, leave_cond_queue, c) :
		kbi_waitq_await(&w.w.n, until, leave_cond_queue, c);
	h.over = true;
	if (kbi_likely(!rc && a_load_rlx(&w.w.n.state) == SIGNALLED) &&
			kbi_likely(kbi_mutex_quick_lock(m, self))) {
		m->waits--;
		return 0;
	}
	return relock_cond_mutex(&w, rc, h.count);
}

int kbi_cond_wait(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until)
{
	return wait_on_cond(c, m, until, false);
}

KBI_SWITCHER int kbi_cond_wait_asked(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until)
{
	return wait_on_cond(c, m, until, true);
}

int kbi_cond_wait_any(kb_cond_t *c, int (*unlock)(void *), void *lock, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	struct waiter w = { .w = { .n.task = self }, .may_leave = true };
	int e, rc;

	kbi_np_enter(self);
	enter_cond_queue(c, &w);
	kbi_np_leave(self);
	e = unlock(lock);
	if (kbi_unlikely(e))
		until = kbi_waitq_until(0);
	rc = kbi_waitq_await(&w.w.n, until, leave_cond_queue, c);
	if (kbi_likely(!e))
		return rc;
	if (!rc)
		kbi_cond_signal(c); /* the signal was for a different thread */
	return -e;
}

int kb_cond_wait(kb_cond_t *c, kb_mutex_t *m)
{
	return kbi_cond_wait_asked(c, m, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_cond_timedwait(kb_cond_t *c, kb_mutex_t *m, uint64_t deadline)
{
	return kbi_cond_wait_asked(c, m, kbi_waitq_until_handling(deadline));
}

void kbi_cond_orphan(kb_cond_t *c)
{
	*cond_queue(c) = (struct kbi_waitq){ NULL, NULL };
	a_store_rlx(cond_word(c), 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

int kb_cond_init(kb_cond_t *c)
{
	*c = (kb_cond_t)KB_COND_INIT;
	return 0;
}

/* Returns whether a waiter has not given up. Under the queue lock. */
static bool has_sleeper(struct kbi_waitq *q)
{
	for (struct kbi_wnode *n = q->head; n; n = n->next)
		if (a_load_rlx(&n->state) != LEAVING)
			return true;
	return false;
}

/* Returns EBUSY if threads wait. Waits for threads on their way out of a timed wait: those run. */
int kb_cond_destroy(kb_cond_t *c)
{
	struct kbi_task *self = kbi_waitq_self();
	bool busy, empty;
	unsigned n = 0;

	/* 0: no thread is in the queue or holds its lock. acquire: pairs with the release in
	 * kbi_waitq_unlock, by which the last thread has left the condition variable */
	if (kbi_likely(!a_load_acq(cond_word(c))))
		return 0;
	do {
		kbi_np_enter(self);
		kbi_waitq_lock(cond_word(c));
		empty = !cond_queue(c)->head;
		busy = has_sleeper(cond_queue(c));
		kbi_waitq_unlock(cond_word(c), kbi_waitq_some(cond_queue(c)));
		kbi_np_leave(self);
		if (!empty && !busy)
			kbi_sys_yield_to_holder(n++);
	} while (!empty && !busy);
	return busy ? EBUSY : 0;
}
