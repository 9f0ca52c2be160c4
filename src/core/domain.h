/* core/domain.h - what the keeper of a domain does: claims waiters, delivers mail, expires deadlines, polls watched
 * words; and how a wake-up finds the keeper. Every function runs on VP `me`, inside np brackets; tasks that become
 * ready go to me's queue. Callers: run, wait, timer, watch, agent, thread. Calls vp, board, foreign. */
#ifndef KBI_DOMAIN_H
#define KBI_DOMAIN_H

#include "core/vp.h"

/* A memory word that a waiter watches. The record lies on the waiter's stack. */
struct kbi_watch {
	struct kbi_watch *next, **link; /* link: what points here */
	const volatile void *word;
	uint64_t old;
	unsigned size; /* 4 or 8 bytes */
	bool rung;     /* who changes it wakes the VP if that sleeps (kbi_agent_dozes): no need to look up */
	bool boarded;  /* who changes it says so on a board (kbi_domain_boards): it is not polled */
	a32 *tally;    /* how many there are of its kind; NULL: nobody counts */
	struct kbi_task *task;
};

/* The WAITING task t of domain dom, which the caller holds, becomes the caller's. It makes it READY or runs it. */
static inline void kbi_domain_claim(struct kbi_vp *dom, struct kbi_task *t, enum kbi_wake_reason reason);
/* Every source of a domain, on behalf of me (me == dom, or dom is held). now: CLOCK_MONOTONIC ns if known, else 0. */
void kbi_domain_poll(struct kbi_vp *me, struct kbi_vp *dom, uint64_t now);

/* A wake-up that is not for a waiter of me's. front: it should run next. */
void kbi_domain_wake_far(struct kbi_vp *me, struct kbi_task *t, bool front);
/* A wake-up of any waiter that is not to wait for me's other threads: it runs on its own VP, which is woken, or on `other`
 * if it waits here. */
void kbi_domain_wake_apart(struct kbi_vp *me, struct kbi_task *t, struct kbi_vp *other);
/* The same from a kernel thread that is no VP. */
void kbi_domain_wake_from_outside(struct kbi_task *t);
/* A message to t's home: what and kind as in board.h. */
void kbi_domain_post(struct kbi_vp *me, struct kbi_vp *home, struct kbi_task *t, void *what, unsigned kind,
		     uint64_t value);

/* Takes an armed task's deadline and watch out of the domain. */
void kbi_domain_disarm(struct kbi_vp *dom, struct kb_thread *t);
/* list: where it stands, NULL: among those that are polled. */
void kbi_domain_watch_add(struct kbi_vp *dom, struct kbi_watch *w, struct kbi_watch **list);
bool kbi_domain_watch_changed(const struct kbi_watch *w);
/* It is said to have changed: its waiter, if it waits in dom, goes on. */
void kbi_domain_watch_fire(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_watch *w);
/* Fires what the boards of dom tell. Set before the first boarded watch. */
extern KBI_HIDDEN void (*kbi_domain_boards)(struct kbi_vp *me, struct kbi_vp *dom);

static inline void kbi_domain_claim(struct kbi_vp *dom, struct kbi_task *t, enum kbi_wake_reason reason)
{
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_ARMED))) {
		kbi_domain_disarm(dom, kbi_thread_of(t));
		kbi_thread_of(t)->reason = (uint8_t)reason;
	}
	/* acquire: partner is the waker's release store of the byte; a byte left set is a later permit */
	if (kbi_unlikely(!a_zero8_rlx(&t->permit)))
		a_xchg_acq(&t->permit, 0);
}

/* A wake-up, wherever t is. front: it should run next. */
static inline void kbi_domain_wake(struct kbi_vp *me, struct kbi_task *t, bool front)
{
	/* acquire: partner is the release in kbi_wait_sleep (our own VP's: program order) */
	if (kbi_likely(a_load_acq(&t->state) == me->waiting_here)) {
		kbi_domain_claim(me, t, KBI_WAKE_PERMIT);
		kbi_vp_push(me, t, front);
	} else {
		kbi_domain_wake_far(me, t, front);
	}
}

#endif
