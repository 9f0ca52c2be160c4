/* core/domain.h - the work of a domain's keeper: claiming waiters, delivering mail, expiring
 * deadlines, polling watched words; and how a wake-up finds the keeper. Every function runs on
 * VP `me`, inside np brackets, unless its comment says otherwise; tasks that become ready go to
 * me's queue. No locks; never switches.
 * Callers: run, wait, timer, watch, agent, thread. Calls vp, sched/board, foreign. */
#ifndef KBI_DOMAIN_H
#define KBI_DOMAIN_H

#include "core/vp.h"

/* A memory word that a waiter watches. The record lies on the waiter's stack. */
struct kbi_watch {
	struct kbi_watch *next, **link; /* link: the pointer that points to this record */
	const volatile void *word;
	uint64_t old;
	unsigned size; /* 4 or 8 bytes */
	/* its writer wakes the VP if the VP sleeps (kbi_agent_dozes), so the VP need not wake to
	 * look */
	bool rung;
	bool boarded;  /* its writer tells a board (kbi_domain_boards); it is not polled */
	a32 *counter;  /* counter of watches of its kind; NULL: not counted */
	struct kbi_task *task;
};

/* Claims t, a WAITING task of domain dom, which the caller holds. The caller then makes t READY
 * or runs it. */
static inline void kbi_domain_claim(struct kbi_vp *dom, struct kbi_task *t,
	enum kbi_wake_reason reason);
/* Looks at every source of dom on behalf of me (me == dom, or me holds dom). now:
 * CLOCK_MONOTONIC ns if known, else 0. */
void kbi_domain_poll(struct kbi_vp *me, struct kbi_vp *dom, uint64_t now);

/* The rest of kbi_domain_wake, for a t that does not wait on me. front: t should run next. */
void kbi_domain_wake_far(struct kbi_vp *me, struct kbi_task *t, bool front);
/* Wakes t, which is not to wait for me's threads: it runs on its own VP, which is woken, or on
 * `other` if it waits here. */
void kbi_domain_wake_apart(struct kbi_vp *me, struct kbi_task *t, struct kbi_vp *other);
/* Wakes t from a kernel thread that is no VP. */
void kbi_domain_wake_from_outside(struct kbi_task *t);
/* Sends a message to t's home VP; what and kind as in sched/board.h. */
void kbi_domain_post(struct kbi_vp *me, struct kbi_vp *home, struct kbi_task *t, void *what,
	unsigned kind, uint64_t value);

/* Removes an armed task's deadline and watch from the domain. */
void kbi_domain_disarm(struct kbi_vp *dom, struct kb_thread *t);
/* Adds a watch to dom. list: the list that it goes into; NULL: the list of polled watches. */
void kbi_domain_watch_add(struct kbi_vp *dom, struct kbi_watch *w, struct kbi_watch **list);
bool kbi_domain_watch_changed(const struct kbi_watch *w);
/* Wakes the waiter of w, whose word is said to have changed, if it waits in dom. */
void kbi_domain_watch_fire(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_watch *w);
/* Fires the watches that the boards of dom tell of. Set before the first boarded watch. */
extern KBI_HIDDEN void (*kbi_domain_boards)(struct kbi_vp *me, struct kbi_vp *dom);

static inline void kbi_domain_claim(struct kbi_vp *dom, struct kbi_task *t,
	enum kbi_wake_reason reason)
{
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_ARMED))) {
		kbi_domain_disarm(dom, kbi_thread_of(t));
		kbi_thread_of(t)->reason = (uint8_t)reason;
	}
	/* acquire: pairs with the waker's release store in leave_permit; a permit set later stays
	 * for the next sleep */
	if (kbi_unlikely(!a_zero8_rlx(&t->permit)))
		a_xchg_acq(&t->permit, 0);
}

/* Wakes t, wherever it is. front: t should run next. */
static inline void kbi_domain_wake(struct kbi_vp *me, struct kbi_task *t, bool front)
{
	/* acquire: pairs with the release in kbi_wait_sleep_on (on our own VP: program order) */
	if (kbi_likely(a_load_acq(&t->state) == me->waiting_here)) {
		kbi_domain_claim(me, t, KBI_WAKE_PERMIT);
		kbi_vp_push(me, t, front);
	} else {
		kbi_domain_wake_far(me, t, front);
	}
}

#endif
