/* sync/waitq.h - the base of all objects that threads wait for: a word with a queue lock bit, a
 * first-in first-out list of nodes that lie on the waiters' stacks, and the three steps of a
 * wake-up. Where threads have real-time priorities, a waiter of a higher priority stands before the
 * waiters of lower ones.
 *
 * The laws of a wake-up
 *  1. Under the object's queue lock the waker unlinks the node, marks it TAKEN and decides the
 *     verdict, the result of the wait.
 *  2. The waker releases the queue lock by its last store to the object: the woken thread may free
 *     the object.
 *  3. The waker reads all it needs of the node, then stores the verdict (kbi_waitq_grant): after
 *     that store the node's memory is gone. The task descriptor is type-stable, so a late wake is
 *     harmless.
 * A waiter that gives up (deadline, stop) takes the queue lock. If its node is still QUEUED, the
 * waiter unlinks the node; else the wake-up has won, and the waiter waits the few instructions for
 * the verdict. Exactly one side wins.
 *
 * The word of an object holds KBI_WAITQ_LOCK and KBI_WAITQ_SOME beside the object's own bits. Every
 * thread changes the word by CAS from a value without KBI_WAITQ_LOCK; so the holder of the lock is
 * alone with the word and unlocks by one plain release store of the new value. The lock is held
 * inside np brackets, never across a switch. Only the functions marked KBI_SWITCHES may switch.
 * Callers: this room, io, posix. Calls core/wait, core/domain, core/timer. */
#ifndef KBI_WAITQ_H
#define KBI_WAITQ_H

#include "core/domain.h"
#include "core/single_threaded.h"
#include "core/timer.h"
#include "core/wait.h"

enum {
	KBI_WAITQ_LOCK = 2, /* a thread works on the queue */
	KBI_WAITQ_SOME = 4, /* the queue is not empty */
};

/* States of a node. TAKEN: stored under the queue lock by the waker that unlinks the node. GRANTED
 * and above: the verdict, numbered by each unit for itself; stored last, by the waker. */
enum kbi_wnode_state {
	KBI_WNODE_QUEUED,
	KBI_WNODE_TAKEN,
	KBI_WNODE_GRANTED,
};

struct kbi_wnode {
	/* under the object's queue lock; next also chains the nodes that a waker has taken */
	struct kbi_wnode *next, *prev;
	struct kbi_task *task; /* constant while queued */
	a32 state;             /* enum kbi_wnode_state */
	uint32_t rank; /* real-time priority of the thread, 0: none; zero before the node is appended */
};

/* Lies over the two pointers of a public object. All zero is an empty
 * queue. Under the queue lock. */
struct kbi_waitq {
	void *head, *tail;
};

/* How long a waiter waits: until `deadline` (KBI_FOREVER: none) or until stop(self) returns an
 * errno value (NULL: never). stop is asked after each wake of any kind; its reasons are
 * cancellation and interruption by a signal. EAGAIN means: stop itself has run a handler, which may
 * have slept and so consumed the waiter's permit; the waiter then looks at its node again. */
struct kbi_until {
	uint64_t deadline;
	int (*stop)(struct kbi_task *self);
};

/* Flag of a deadline on CLOCK_REALTIME; the remaining bits are its ns. The clock is read once a
 * second, because it may be set meanwhile. */
#define KBI_WAITQ_REAL (UINT64_C(1) << 63)

static inline uint64_t kbi_waitq_real(int64_t sec, long nsec)
{
	enum { SECOND = 1000000000 };

	if (sec > (int64_t)(KBI_WAITQ_REAL / SECOND) - 2)
		return KBI_FOREVER;
	return KBI_WAITQ_REAL | (sec < 0 ? 0 : (uint64_t)sec * SECOND + (uint64_t)nsec);
}

static inline struct kbi_until kbi_waitq_until(uint64_t deadline)
{
	/* deadline is of CLOCK_MONOTONIC: a value that has the flag by accident never comes */
	return (struct kbi_until){ deadline & KBI_WAITQ_REAL ? KBI_FOREVER : deadline, NULL };
}

/* As kbi_waitq_until, for a wait of the native interface: handlers of signals run meanwhile. Not
 * for waits of the runtime itself, which may be in the middle of an operation. */
static inline struct kbi_until kbi_waitq_until_handling(uint64_t deadline)
{
	struct kbi_until until = kbi_waitq_until(deadline);

	until.stop = kbi_wait_handlers;
	return until;
}

static inline struct kbi_task *kbi_waitq_self(void)
{
	struct kbi_task *self = kbi_self_raw();

	return kbi_likely(self != NULL) ? self : kbi_self();
}

/* ---- the word ------------------------------------------------------------------------------- */

/* Takes the queue lock. Returns the word without the lock bit. Inside np brackets. */
static inline uint32_t kbi_waitq_lock(a32 *word)
{
	kbi_spin_lock_bit(word, KBI_WAITQ_LOCK);
	return a_load_rlx(word) & ~(uint32_t)KBI_WAITQ_LOCK;
}

/* Stores the new value and thereby releases the queue lock. */
static inline void kbi_waitq_unlock(a32 *word, uint32_t value)
{
	/* release: pairs with the acquire of the next thread that locks the
	 * queue or takes the object */
	a_store_rel(word, value);
}

/* Pauses in a loop that waits for a lock bit without kbi_waitq_lock, after the n-th failed try. */
void kbi_waitq_pause(unsigned n);

/* ---- the list -------------------------------------------------------------------------------- */

/* A function that returns the real-time priority of its caller, a thread that is about to wait;
 * NULL: no thread has a priority. Set once, by the drop-in. */
extern KBI_HIDDEN aptr kbi_waitq_rank;

/* Inserts n where threads have priorities: before the nodes of lower rank and after the nodes of
 * equal rank, or, with `first`, before the nodes of equal rank. */
void kbi_waitq_insert(struct kbi_waitq *q, struct kbi_wnode *n, bool first);

static inline void kbi_waitq_append(struct kbi_waitq *q, struct kbi_wnode *n)
{
	struct kbi_wnode *tail = q->tail;

	if (kbi_unlikely(a_load_rlx(&kbi_waitq_rank))) {
		kbi_waitq_insert(q, n, false);
		return;
	}
	n->next = NULL;
	n->prev = tail;
	if (tail)
		tail->next = n;
	else
		q->head = n;
	q->tail = n;
}

static inline void kbi_waitq_prepend(struct kbi_waitq *q, struct kbi_wnode *n)
{
	struct kbi_wnode *head = q->head;

	if (kbi_unlikely(a_load_rlx(&kbi_waitq_rank))) {
		kbi_waitq_insert(q, n, true);
		return;
	}
	n->prev = NULL;
	n->next = head;
	if (head)
		head->prev = n;
	else
		q->tail = n;
	q->head = n;
}

static inline void kbi_waitq_remove(struct kbi_waitq *q, struct kbi_wnode *n)
{
	if (n->prev)
		n->prev->next = n->next;
	else
		q->head = n->next;
	if (n->next)
		n->next->prev = n->prev;
	else
		q->tail = n->prev;
}

/* Unlinks a node in order to wake its thread. */
static inline void kbi_waitq_take(struct kbi_waitq *q, struct kbi_wnode *n)
{
	kbi_waitq_remove(q, n);
	a_store_rlx(&n->state, KBI_WNODE_TAKEN);
}

/* Returns KBI_WAITQ_SOME if there are waiters, else 0. */
static inline uint32_t kbi_waitq_some(const struct kbi_waitq *q)
{
	return q->head ? KBI_WAITQ_SOME : 0;
}

/* Unlinks the first node of a non-empty queue in order to wake its thread. */
static inline struct kbi_wnode *kbi_waitq_take_first(struct kbi_waitq *q)
{
	struct kbi_wnode *n = q->head;

	kbi_waitq_take(q, n);
	return n;
}

/* ---- waking and waiting ---------------------------------------------------------------------- */

/* Stores the verdict and wakes the waiter: law 3. Not under a queue lock. */
static inline void kbi_waitq_grant(struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: pairs with the acquire in kbi_waitq_await; the waiter sees all
	 * that the waker did before */
	a_store_rel(&n->state, verdict);
	kbi_wait_wake(t);
}

/* As kbi_waitq_grant, without a call where the waiter sleeps on the caller's VP.
 * Inside np brackets of self. */
static inline void kbi_waitq_grant_from(struct kbi_task *self, struct kbi_wnode *n,
	uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: pairs with the acquire in kbi_waitq_await */
	a_store_rel(&n->state, verdict);
	if (kbi_likely(self->vp != NULL))
		kbi_domain_wake(self->vp, t, false);
	else
		kbi_wait_wake(t);
}

/* As kbi_waitq_grant, for a hand-over: the waiter runs before the
 * threads that are ready already. */
static inline void kbi_waitq_grant_next(struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: pairs with the acquire in kbi_waitq_await */
	a_store_rel(&n->state, verdict);
	kbi_wait_wake_next(t);
}

/* Grants the verdict to every node of a chain linked by next. */
void kbi_waitq_grant_all(struct kbi_wnode *chain, uint32_t verdict);
/* As kbi_waitq_grant_all, for n waiters that should run in parallel to the caller: idle virtual
 * processors get their part of the waiters. */
void kbi_waitq_grant_apart(struct kbi_wnode *chain, unsigned n, uint32_t verdict);

/* Sleeps once. Returns 0 (woken, perhaps spuriously), ETIMEDOUT, or the result of stop. */
KBI_SWITCHES int kbi_waitq_sleep(struct kbi_task *self, struct kbi_until until);

/* Waits for the node's verdict. Returns 0, and n->state is GRANTED or above. If the deadline passes
 * or stop ends the wait, calls leave(object, n), which takes the queue lock, unlinks the node if it
 * is still QUEUED, and returns true if it was; then the result is ETIMEDOUT or the result of
 * stop. */
KBI_SWITCHES int kbi_waitq_await(struct kbi_wnode *n, struct kbi_until until,
				 bool (*leave)(void *object, struct kbi_wnode *n), void *object);

/* As kbi_waitq_await, for a caller that has asked stop since it last suspended. Inlines a wait
 * without deadline that one sleep ends; only in a KBI_SWITCHER. */
KBI_SWITCHES static inline __attribute__((always_inline)) int
kbi_waitq_await_asked(struct kbi_wnode *n, struct kbi_until until,
	bool (*leave)(void *object, struct kbi_wnode *n), void *object)
{
	if (kbi_likely(until.deadline == KBI_FOREVER)) {
		kbi_wait_sleep_in_line(n->task);
		/* acquire: pairs with the release in kbi_waitq_grant */
		if (kbi_likely(a_load_acq(&n->state) >= KBI_WNODE_GRANTED))
			return 0;
	}
	return kbi_waitq_await(n, until, leave, object);
}

/* A crowd: kernel threads that are no virtual processors and are granted all at once. They sleep at
 * one word, chosen by the object's address, and one system call wakes them. The word changes after
 * their verdicts are stored. kbi_waitq_crowd_seen returns the word; a waiter reads it under the
 * queue lock, before it queues its node, and passes it to kbi_waitq_await_in_crowd. */
uint32_t kbi_waitq_crowd_seen(const void *object);
KBI_SWITCHES int kbi_waitq_await_in_crowd(struct kbi_wnode *n, struct kbi_until until,
					  bool (*leave)(void *object, struct kbi_wnode *n), void *object,
						uint32_t seen);
/* Stores the verdicts and wakes the crowd. Not under a queue lock. */
void kbi_waitq_grant_crowd(struct kbi_wnode *chain, uint32_t verdict, const void *object);

/* Serves as leave() of an object whose word has no bits that depend on the waiters. */
bool kbi_waitq_leave(a32 *word, struct kbi_waitq *q, struct kbi_wnode *n);

#endif
