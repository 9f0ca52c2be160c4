/* core/wait.h - the one waiting primitive: sleep() and wake(thread). Everything that blocks stands on it.
 *
 * The permit: a wake of a thread that is not asleep is kept (one, not counted) and makes its next sleep
 * return at once. Sleeps may return spuriously (a permit left over from a wait that timed out, a recycled
 * descriptor): EVERY caller re-checks its own condition in a loop. Who commits a wake-up (dequeues a waiter,
 * hands over a lock) does so under the object's lock and then calls wake; who times out takes that lock
 * and looks whether it is still queued: exactly one wins.
 * wake() costs no atomic read-modify-write when the sleeper waits on the caller's VP; else one message and
 * one fence. Callers: sync, io, posix, core/timer, core/thread. */
#ifndef KBI_WAIT_H
#define KBI_WAIT_H

#include "core/cell.h"
#include "core/domain.h"
#include "core/run.h"
#include "core/spin.h"
#include "core/task.h"

/* The calling thread; a foreign kernel thread gets a task of kind FOREIGN at its first call (aborts with a
 * message only if memory for that is lacking). Never NULL. */
struct kbi_task *kbi_self(void);

/* What native waits ask for signals that were sent to self; the drop-in's, set before there is a second thread, or NULL.
 * due: EINTR if handlers are to run, else 0. handlers: before each sleep, outside np brackets: has run them, and left a
 * permit then, for a wake-up may have come meanwhile. 0. */
extern KBI_HIDDEN int (*kbi_wait_due)(struct kbi_task *self);
extern KBI_HIDDEN int (*kbi_wait_handlers)(struct kbi_task *self);

static inline void kbi_wait_handle(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_wait_handlers != NULL))
		kbi_wait_handlers(self);
}

/* Sleeps until a wake (or returns at once if one is pending). May be called with np > 0. */
KBI_SWITCHES void kbi_wait_sleep(struct kbi_task *self);

/* Gives t a permit. Any thread, also foreign kernel threads; not from signal handlers. t may have ended:
 * descriptors are type-stable, a stray permit is harmless. */
void kbi_wait_wake(struct kbi_task *t);

/* The same, and t should run before what is ready already (hand-over of a lock). */
void kbi_wait_wake_next(struct kbi_task *t);

/* A message to a cell where kbi_wait_deliver_here cannot deliver it: self is a VP's thread inside np
 * brackets, which this leaves; or the caller is a kernel thread that is no VP. */
void kbi_wait_deliver_slow(struct kbi_cell *c, uint64_t value, struct kbi_task *self);
void kbi_wait_deliver_from_outside(struct kbi_cell *c, uint64_t value);

/* No-preempt brackets round every piece of library code that touches queues or locks: the tick leaves the
 * thread alone inside. Nest freely; the count belongs to the thread and travels with it. */
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

/* ---- the fast ways, for functions that have them in line: each instruction of a rendezvous counts ---- */

/* self, which runs on vp, has said that it is WAITING, and its context is not saved: true if there is a permit, then it is
 * RUNNING again. This order is for signal handlers on this kernel thread: what a handler brings for a RUNNING thread comes
 * with a permit, which is found here; to a WAITING thread it sends a wake-up. */
static inline bool kbi_wait_has_permit(struct kbi_vp *vp, struct kbi_task *self)
{
	kbi_compiler_barrier();
	/* acquire: partner is the release of who set it */
	if (kbi_likely(a_zero8_rlx(&self->permit)) || !a_xchg_acq(&self->permit, 0))
		return false;
	a_store_rlx(&self->state, vp->running_here);
	return true;
}

/* self runs on vp, inside np brackets. False: there was a permit. */
KBI_SWITCHES static inline __attribute__((always_inline)) bool
kbi_wait_sleep_on(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *next;

	/* Looked at while still RUNNING: a wake-up that is found leaves a permit. Once WAITING nobody looks at any
	 * source before the context is saved: self could be claimed, queued and given away without one. */
	kbi_run_look_if_due(vp);
	/* release: partner is the acquire of who reads WAITING to claim it while this VP sleeps. The context is
	 * not saved yet, but only this VP, or who takes its domain when it is idle, may resume us. */
	a_store_rel(&self->state, vp->waiting_here);
	if (kbi_unlikely(kbi_wait_has_permit(vp, self)))
		return false;
	next = kbi_vp_pop(vp);
	kbi_run_switch_to(vp, self, next, NULL, NULL);
	return true;
}

/* kbi_wait_sleep in line, for a KBI_SWITCHER: it has less to keep than a call of its own. */
KBI_SWITCHES static inline __attribute__((always_inline)) void kbi_wait_sleep_in_line(struct kbi_task *self)
{
	kbi_np_enter(self);
	if (kbi_likely(self->vp != NULL))
		kbi_wait_sleep_on(self->vp, self);
	else
		kbi_wait_sleep(self);
	kbi_np_leave(self);
}

/* The common case in line, without a call: the owner waits here for this cell, no idle VP need be told. Its permit, if
 * it has one, is not looked at: it will find it when it next sleeps. After kbi_cell_fetch. */
static inline __attribute__((always_inline)) bool
kbi_wait_deliver_here(struct kbi_vp *vp, struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *t = c->owner;

	/* acquire: as in kbi_domain_wake */
	if (kbi_unlikely(a_load_acq(&t->state) != vp->waiting_here || t->awaits != c || !kbi_vp_content(vp)))
		return false;
	kbi_cell_hand(c, t, value);
	kbi_vp_enqueue_here(vp, t, false);
	return true;
}

#endif
