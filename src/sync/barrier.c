/* sync/barrier.c - barriers: the last thread to arrive releases the waiters. The waiters
 * receive their verdict on their own stacks, so any of them may destroy the barrier as soon as
 * its own wait has returned.
 * Callers: all rooms above. Calls waitq. Waiting may switch. */
#include "sync/barrier.h"

#include <errno.h>

static inline a32 *barrier_word(kb_barrier_t *b) { return (a32 *)&b->word; }
static inline struct kbi_waitq *barrier_queue(kb_barrier_t *b)
{
	return (struct kbi_waitq *)&b->head;
}

/* A kernel thread that is no virtual processor waits in a crowd: a
 * system call wakes all of them. */
struct waiter {
	struct kbi_wnode n; /* first */
	bool in_crowd;      /* constant while queued */
};

/* The waiters of a round, as two chains. */
struct round {
	struct kbi_wnode *threads, *crowd;
};

/* Completes the round and begins a new round. Returns the waiters. Under the queue lock. */
static struct round next_round(kb_barrier_t *b)
{
	struct round done;
	struct kbi_wnode **threads = &done.threads, **crowd = &done.crowd;

	for (struct kbi_wnode *n = barrier_queue(b)->head; n; n = n->next) {
		struct kbi_wnode ***end = ((struct waiter *)n)->in_crowd ? &crowd : &threads;

		a_store_rlx(&n->state, KBI_WNODE_TAKEN);
		**end = n;
		*end = &n->next;
	}
	*threads = *crowd = NULL;
	*barrier_queue(b) = (struct kbi_waitq){ NULL, NULL };
	b->left = b->need;
	return done;
}

static bool leave_barrier(void *barrier, struct kbi_wnode *n)
{
	kb_barrier_t *b = barrier;
	struct kbi_task *self = n->task;
	bool queued;

	kbi_np_enter(self);
	kbi_waitq_lock(barrier_word(b));
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued) {
		kbi_waitq_remove(barrier_queue(b), n);
		b->left++;
	}
	kbi_waitq_unlock(barrier_word(b), 0);
	kbi_np_leave(self);
	return queued;
}

int kbi_barrier_wait(kb_barrier_t *b, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	struct waiter w = { .n.task = self, .in_crowd = !self->vp };
	struct round done = { NULL, NULL };
	uint32_t seen = 0;
	bool last;

	kbi_np_enter(self);
	kbi_waitq_lock(barrier_word(b));
	/* a change of the crowd's word for this round comes after the lock has been taken again */
	if (w.in_crowd)
		seen = kbi_waitq_crowd_seen(b);
	last = --b->left == 0;
	if (last)
		done = next_round(b);
	else
		kbi_waitq_append(barrier_queue(b), &w.n);
	kbi_waitq_unlock(barrier_word(b), 0);
	kbi_waitq_grant_all(done.threads, KBI_WNODE_GRANTED);
	kbi_waitq_grant_crowd(done.crowd, KBI_WNODE_GRANTED, b);
	kbi_np_leave(self);
	if (last)
		return KB_BARRIER_SERIAL;
	return w.in_crowd ? kbi_waitq_await_in_crowd(&w.n, until, leave_barrier, b, seen) :
		kbi_waitq_await(&w.n, until, leave_barrier, b);
}

int kb_barrier_timedwait(kb_barrier_t *b, uint64_t deadline)
{
	return kbi_barrier_wait(b, kbi_waitq_until_handling(deadline));
}

int kb_barrier_wait(kb_barrier_t *b)
{
	return kb_barrier_timedwait(b, KBI_FOREVER);
}

int kb_barrier_init(kb_barrier_t *b, uint32_t count)
{
	if (count == 0)
		return EINVAL;
	*b = (kb_barrier_t){ .need = count, .left = count };
	return 0;
}

/* Returns EBUSY if threads wait. */
int kb_barrier_destroy(kb_barrier_t *b)
{
	struct kbi_task *self = kbi_waitq_self();
	bool busy;

	kbi_np_enter(self);
	kbi_waitq_lock(barrier_word(b));
	busy = barrier_queue(b)->head != NULL;
	kbi_waitq_unlock(barrier_word(b), 0);
	kbi_np_leave(self);
	return busy ? EBUSY : 0;
}

void kbi_barrier_orphan(kb_barrier_t *b)
{
	*barrier_queue(b) = (struct kbi_waitq){ NULL, NULL };
	a_store_rlx(barrier_word(b), 0);
}
