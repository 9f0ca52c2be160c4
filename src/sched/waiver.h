/* sched/waiver.h - Lesser Bear's Waiver Queue, thread by thread: a ring with one producer,
 * the owner VP, and one consumer: the ring successor (LB3), or the VP that holds the queue's
 * lock (LB2). No lock, no read-modify-write. A full ring refuses a thread; its owner then keeps
 * the thread in the Protect Queue.
 * Callers: sched/rotator_paper, sched/lb2. Never switches. */
#ifndef KBI_SCHED_WAIVER_H
#define KBI_SCHED_WAIVER_H

#include "base/ring.h"
#include "sched/sched_priv.h"

enum { KBI_WAIVER_SLOTS = 16384 };

struct kbi_waiver {
	/* written by the owner, read by any VP */
	a32 tail KBI_ALIGNED(KBI_CACHE_LINE);
	/* written by the consumer, read by any VP */
	a32 head KBI_ALIGNED(KBI_CACHE_LINE);
	/* owner only: copy of tail */
	uint32_t put KBI_ALIGNED(KBI_CACHE_LINE);
	/* a slot is the owner's until tail passes it, then the consumer's until head does */
	struct kbi_task *slot[KBI_WAIVER_SLOTS] KBI_ALIGNED(KBI_CACHE_LINE);
};

/* Returns the number of waived tasks: a hint. */
static inline uint32_t kbi_waiver_count(const struct kbi_waiver *w)
{
	return a_load_rlx(&w->tail) - a_load_rlx(&w->head);
}

/* Owner: puts t into the queue for VP `to`. Returns false if the queue is full. May run in
 * parallel with the consumer. */
static inline bool kbi_waiver_put(struct kbi_waiver *w, struct kbi_task *t, unsigned to)
{
	if (!kbi_ring_room(&w->head, w->put, KBI_WAIVER_SLOTS))
		return false;
	/* release: pairs with the acquire of any reader of the state word (core/wait, core/dump) */
	a_store_rel(&t->state, KBI_STATE(KBI_TASK_WAIVED, to));
	w->slot[w->put % KBI_WAIVER_SLOTS] = t;
	kbi_ring_publish(&w->tail, ++w->put);
	return true;
}

/* Consumer: takes the oldest task; returns NULL if there is none. The slot is free at once. May
 * run in parallel with the owner. acquire on head: pairs with the release of the previous
 * consumer where consumers take turns (LB2), so that our release covers its reads, too. */
static inline struct kbi_task *kbi_waiver_take(struct kbi_waiver *w)
{
	uint32_t taken = a_load_acq(&w->head);
	struct kbi_task *t;

	if (!kbi_ring_filled(&w->tail, taken))
		return NULL;
	t = w->slot[taken % KBI_WAIVER_SLOTS];
	kbi_ring_release(&w->head, taken + 1);
	return t;
}

/* Owner: waives the tasks in the Protect Queue beyond `keep`, the newest first; bound tasks are
 * neither counted nor waived. Returns how many it waived. */
unsigned kbi_waiver_spill(struct kbi_waiver *w, struct kbi_sched_vp *s, unsigned keep, unsigned to);

/* Implements struct kbi_sched.take if every READY(s) task is in the Protect Queue: only s makes
 * a task READY(s) and changes that state. */
bool kbi_waiver_not_waived(struct kbi_sched_vp *s, struct kbi_task *t);

#endif
