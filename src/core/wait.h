/* core/wait.h - the one waiting primitive, sleep() and wake(thread), below everything that
 * blocks.
 *
 * The permit: a wake of a thread that is not asleep is kept (one, not counted) and makes the
 * thread's next sleep return at once. A sleep may return spuriously (a permit left over from a
 * wait that timed out, a recycled descriptor): EVERY caller re-checks its own condition in a
 * loop. A thread that commits a wake-up (dequeues a waiter, hands over a lock) does this under
 * the object's lock and then calls wake. A thread that times out takes that lock and looks
 * whether it is still queued: exactly one of the two wins. A wake() costs no atomic
 * read-modify-write when the sleeper waits on the caller's VP; else one message and one fence.
 * Callers: sync, io, posix, core/timer, core/thread. Only functions marked KBI_SWITCHES switch. */
#ifndef KBI_WAIT_H
#define KBI_WAIT_H

#include "core/cell.h"
#include "core/domain.h"
#include "core/run.h"
#include "sched/spin.h"
#include "sched/task.h"

/* Returns the calling thread, never NULL. A foreign kernel thread gets a task of kind FOREIGN at
 * its first call (the call aborts with a message only if there is no memory for it). */
struct kbi_task *kbi_self(void);

/* Hooks of native waits for signals sent to self; set by the drop-in before there is a second
 * thread, or NULL. kbi_wait_due returns EINTR if handlers are to run, else 0. kbi_wait_handlers
 * is called before each sleep, outside np brackets; it returns 0. If it has run handlers, it
 * leaves a permit, because a wake-up may have come meanwhile. */
extern KBI_HIDDEN int (*kbi_wait_due)(struct kbi_task *self);
extern KBI_HIDDEN int (*kbi_wait_handlers)(struct kbi_task *self);

static inline void kbi_wait_handle(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_wait_handlers != NULL))
		kbi_wait_handlers(self);
}

/* Sleeps until a wake (or returns at once if there is a permit). May be called with np > 0. */
KBI_SWITCHES void kbi_wait_sleep(struct kbi_task *self);

/* Gives t a permit, which wakes it if it sleeps. Any thread, also foreign kernel threads; not
 * from signal handlers. t may have ended: its descriptor stays a descriptor, and a stray permit
 * is harmless. */
void kbi_wait_wake(struct kbi_task *t);

/* kbi_wait_wake, and t should run before the tasks that are ready (hand-over of a lock). */
void kbi_wait_wake_next(struct kbi_task *t);

/* Deliver a message to a cell where kbi_wait_deliver_here cannot. slow: self is a VP's thread
 * inside np brackets, which this call leaves. from_outside: the caller is a kernel thread that
 * is no VP. */
void kbi_wait_deliver_slow(struct kbi_cell *c, uint64_t value, struct kbi_task *self);
void kbi_wait_deliver_from_outside(struct kbi_cell *c, uint64_t value);

/* No-preempt brackets round every piece of library code that touches queues or locks: the tick
 * leaves the thread alone inside. Nest freely; the count belongs to the thread and travels with
 * it. */
static inline void kbi_np_enter(struct kbi_task *self)
{
	a_own_inc16(&self->np);
	kbi_compiler_barrier();
}

static inline void kbi_np_leave(struct kbi_task *self)
{
	kbi_compiler_barrier();
	a_own_dec16(&self->np);
}

/* ---- the fast paths, for functions that have them in line: each instruction of a rendezvous
 * counts */

/* Returns true if self, which runs on vp, has a permit; self is RUNNING again then. Before the
 * call self has become WAITING, and its context is not saved. This order is for signal handlers
 * on this kernel thread: a handler gives a RUNNING thread a permit, which is found here; to a
 * WAITING thread it sends a wake-up. */
static inline bool kbi_wait_has_permit(struct kbi_vp *vp, struct kbi_task *self)
{
	kbi_compiler_barrier();
	/* acquire: pairs with the release of the VP that set it (leave_permit in core/domain.c) */
	if (kbi_likely(a_zero8_rlx(&self->permit)) || !a_xchg_acq(&self->permit, 0))
		return false;
	a_store_rlx(&self->state, vp->running_here);
	return true;
}

/* Sleeps; self runs on vp, inside np brackets. Returns false if there was a permit. */
KBI_SWITCHES static inline __attribute__((always_inline)) bool
kbi_wait_sleep_on(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *next;

	/* The look comes while self is still RUNNING: a wake-up that it finds leaves a permit. After
	 * self is WAITING no source is looked at before the context is saved: self could be claimed,
	 * queued and given away without a context. */
	kbi_run_look_if_due(vp);
	/* release: pairs with the acquire of a VP that reads WAITING to claim self while this VP
	 * sleeps. The context is not saved yet, but only this VP, or the VP that takes its domain
	 * when it is idle, may resume self. */
	a_store_rel(&self->state, vp->waiting_here);
	if (kbi_unlikely(kbi_wait_has_permit(vp, self)))
		return false;
	next = kbi_vp_pop(vp);
	kbi_run_switch_to(vp, self, next, NULL, NULL);
	return true;
}

/* kbi_wait_sleep in line, for a KBI_SWITCHER: fewer registers are kept than round a call. */
KBI_SWITCHES static inline __attribute__((always_inline)) void
kbi_wait_sleep_in_line(struct kbi_task *self)
{
	kbi_np_enter(self);
	if (kbi_likely(self->vp != NULL))
		kbi_wait_sleep_on(self->vp, self);
	else
		kbi_wait_sleep(self);
	kbi_np_leave(self);
}

/* Delivers a message in line in the common case: the owner waits here for this cell, and no idle
 * VP need be told. Call it after kbi_cell_fetch. It does not look at the owner's permit; the
 * owner finds a permit when it next sleeps. Returns false if the case is not so. */
static inline __attribute__((always_inline)) bool
kbi_wait_deliver_here(struct kbi_vp *vp, struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *t = c->owner;

	/* acquire: pairs with the release in kbi_wait_sleep_on, as in kbi_domain_wake */
	if (kbi_unlikely(a_load_acq(&t->state) != vp->waiting_here || t->awaits != c ||
		!kbi_vp_content(vp)))
		return false;
	kbi_cell_hand(c, t, value);
	kbi_vp_enqueue_here(vp, t, false);
	return true;
}

#endif
