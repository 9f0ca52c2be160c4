/* sync/waitq.h - what all objects that threads wait for are made of: a word with a queue lock bit, a
 * first-in first-out list of nodes that lie on the waiters' stacks, and the three steps of a wake-up. Where threads have
 * real-time priorities, those of a higher one stand before the others.
 *
 * The laws of a wake-up
 *  1. Under the object's queue lock the waker unlinks the node, marks it TAKEN and decides what the
 *     waiter gets.
 *  2. It releases the queue lock by its last store to the object: the woken thread may free the object.
 *  3. It reads all it needs of the node, then stores the verdict (kbi_waitq_grant): after that store the
 *     node's memory is gone. The task descriptor is type-stable, so waking it late is harmless.
 *  A waiter that gives up (deadline, stop) takes the queue lock: still QUEUED, it unlinks itself; else the
 *  wake-up has won and it waits the few instructions for the verdict. Exactly one wins.
 *
 * The word of an object holds KBI_WAITQ_LOCK and KBI_WAITQ_SOME beside its own bits. Everybody changes
 * it by CAS from a value without KBI_WAITQ_LOCK; so the holder of the lock is alone with the word and
 * unlocks by one plain release store of the new value. The lock is held inside np brackets, never across
 * a switch.
 * Callers: this room, posix. Calls core/wait, core/domain, core/timer. */
#ifndef KBI_WAITQ_H
#define KBI_WAITQ_H

#include "core/domain.h"
#include "core/solo.h"
#include "core/timer.h"
#include "core/wait.h"

enum {
	KBI_WAITQ_LOCK = 2, /* somebody works on the queue */
	KBI_WAITQ_SOME = 4, /* the queue is not empty */
};

/* A node's state. TAKEN: under the queue lock, by who unlinks it to wake it. GRANTED and above: what the
 * waiter got, by the unit's own numbers; stored last, by the waker. */
enum kbi_wnode_state {
	KBI_WNODE_QUEUED,
	KBI_WNODE_TAKEN,
	KBI_WNODE_GRANTED,
};

struct kbi_wnode {
	/* under the object's queue lock; next also chains nodes that one waker has taken */
	struct kbi_wnode *next, *prev;
	struct kbi_task *task; /* constant while queued */
	a32 state;             /* enum kbi_wnode_state */
	uint32_t rank;         /* its thread's real-time priority, 0: none; zero before it is appended */
};

/* Lies over the two pointers of the public objects. All zero is empty. Under the queue lock. */
struct kbi_waitq {
	void *head, *tail;
};

/* How long a waiter waits: until a deadline (KBI_FOREVER: none) or until stop(self), asked after each wake
 * of any kind, returns an errno value (NULL: never): cancellation, interruption by a signal.
 * EAGAIN: stop() itself has run a handler, which may have slept and taken our permit with it; the waiter looks
 * at its node again. */
struct kbi_until {
	uint64_t deadline;
	int (*stop)(struct kbi_task *self);
};

/* A deadline on CLOCK_REALTIME: this beside its ns. The clock is looked at once a second, so that it may be set. */
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
	/* of CLOCK_MONOTONIC: what would be taken for another clock's never comes */
	return (struct kbi_until){ deadline & KBI_WAITQ_REAL ? KBI_FOREVER : deadline, NULL };
}

/* The same for a wait of the native interface: signals' handlers run meanwhile. Not for waits of the runtime's own, which
 * may be in the midst of something. */
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

/* Takes the queue lock; the word without the lock bit. Inside np brackets. */
static inline uint32_t kbi_waitq_lock(a32 *word)
{
	kbi_spin_lock_bit(word, KBI_WAITQ_LOCK);
	return a_load_rlx(word) & ~(uint32_t)KBI_WAITQ_LOCK;
}

/* Stores the new value and thereby gives the lock back. */
static inline void kbi_waitq_unlock(a32 *word, uint32_t value)
{
	/* release: partner is the acquire of whoever locks the queue or takes the object next */
	a_store_rel(word, value);
}

/* For loops that wait for a lock bit by themselves: the n-th try has failed. */
void kbi_waitq_pause(unsigned n);

/* ---- the list -------------------------------------------------------------------------------- */

/* The real-time priority of a thread that is about to wait, the caller; NULL: nobody has one. Set once, by the drop-in. */
extern KBI_HIDDEN aptr kbi_waitq_rank;

/* Where some have: before those of a lower rank, and in order among equals; behind those, or, `first`, before them. */
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

/* KBI_WAITQ_SOME if there are waiters, else 0. */
static inline uint32_t kbi_waitq_some(const struct kbi_waitq *q)
{
	return q->head ? KBI_WAITQ_SOME : 0;
}

/* Unlinks the first node of a non-empty queue, to wake it. */
static inline struct kbi_wnode *kbi_waitq_take_first(struct kbi_waitq *q)
{
	struct kbi_wnode *n = q->head;

	kbi_waitq_take(q, n);
	return n;
}

/* ---- waking and waiting ------------------------------------------------------------------------ */

/* Law 3. Not under a queue lock. */
static inline void kbi_waitq_grant(struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: partner is the acquire in kbi_waitq_await; all the waker did before is the waiter's */
	a_store_rel(&n->state, verdict);
	kbi_wait_wake(t);
}

/* The same without a call where the waiter sleeps on the caller's VP. Inside np brackets of self. */
static inline void kbi_waitq_grant_from(struct kbi_task *self, struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: as above */
	a_store_rel(&n->state, verdict);
	if (kbi_likely(self->vp != NULL))
		kbi_domain_wake(self->vp, t, false);
	else
		kbi_wait_wake(t);
}

/* The same for a hand-over: its thread runs before what is ready already. */
static inline void kbi_waitq_grant_next(struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_task *t = n->task;

	/* release: as above */
	a_store_rel(&n->state, verdict);
	kbi_wait_wake_next(t);
}

/* For every node of a chain linked by next. */
void kbi_waitq_grant_all(struct kbi_wnode *chain, uint32_t verdict);
/* The same of n that are to run at the same time as the caller goes on: idle virtual processors get their part of them. */
void kbi_waitq_grant_apart(struct kbi_wnode *chain, unsigned n, uint32_t verdict);

/* One sleep: 0 (woken, perhaps for nothing), ETIMEDOUT, or what stop said. */
KBI_SWITCHES int kbi_waitq_sleep(struct kbi_task *self, struct kbi_until until);

/* Waits for the node's verdict: 0, and n->state is GRANTED or above. If the patience ends first it asks
 * leave(object, n), which takes the queue lock, unlinks the node if it is still QUEUED and says whether it
 * was; then ETIMEDOUT or what stop said. */
KBI_SWITCHES int kbi_waitq_await(struct kbi_wnode *n, struct kbi_until until,
				 bool (*leave)(void *object, struct kbi_wnode *n), void *object);

/* The same; stop has been asked already since the caller last suspended. In line for a wait without deadline that
 * one sleep ends: in a KBI_SWITCHER. */
KBI_SWITCHES static inline __attribute__((always_inline)) int
kbi_waitq_await_asked(struct kbi_wnode *n, struct kbi_until until, bool (*leave)(void *object, struct kbi_wnode *n),
		      void *object)
{
	if (kbi_likely(until.deadline == KBI_FOREVER)) {
		kbi_wait_sleep_in_line(n->task);
		/* acquire: partner is the release in kbi_waitq_grant */
		if (kbi_likely(a_load_acq(&n->state) >= KBI_WNODE_GRANTED))
			return 0;
	}
	return kbi_waitq_await(n, until, leave, object);
}

/* Kernel threads that are no virtual processors and are all granted at once sleep at one word, by the object's address, and
 * are woken by one system call. It changes after their verdicts are stored. Read before the waiter queues, under the
 * queue lock. */
uint32_t kbi_waitq_crowd_seen(const void *object);
KBI_SWITCHES int kbi_waitq_await_in_crowd(struct kbi_wnode *n, struct kbi_until until,
					  bool (*leave)(void *object, struct kbi_wnode *n), void *object, uint32_t seen);
/* Stores the verdicts and wakes the crowd. Not under a queue lock. */
void kbi_waitq_grant_crowd(struct kbi_wnode *chain, uint32_t verdict, const void *object);

/* leave() of an object whose word has no bits that depend on who waits. */
bool kbi_waitq_leave(a32 *word, struct kbi_waitq *q, struct kbi_wnode *n);

#endif
