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
#include "core/spin.h"
#include "core/task.h"

/* The calling thread; a foreign kernel thread gets a task of kind FOREIGN at its first call (aborts with a
 * message only if memory for that is lacking). Never NULL. */
struct kbi_task *kbi_self(void);

/* Sleeps until a wake (or returns at once if one is pending). May be called with np > 0. */
KBI_SWITCHES void kbi_wait_sleep(struct kbi_task *self);

/* Gives t a permit. Any thread, also foreign kernel threads; not from signal handlers. t may have ended:
 * descriptors are type-stable, a stray permit is harmless. */
void kbi_wait_wake(struct kbi_task *t);

/* The same, and t should run before what is ready already (hand-over of a lock). */
void kbi_wait_wake_next(struct kbi_task *t);

/* Delivers a message to a cell's owner: core/cell.h. */
void kbi_wait_deliver(struct kbi_cell *c, uint64_t value);
/* Waits for a message to the caller's cell and takes it; its value (may be NULL). slow(c, value) does the same in
 * every case and is called where the fast way ends; its result is this function's, else 0. */
typedef int kbi_wait_receive_fn(struct kbi_cell *c, uint64_t *value);
KBI_SWITCHES int kbi_wait_receive(struct kbi_cell *c, uint64_t *value, kbi_wait_receive_fn *slow);

/* No-preempt brackets round every piece of library code that touches queues or locks: the tick leaves the
 * thread alone inside. Nest freely; the count belongs to the thread and travels with it. */
static inline void kbi_np_enter(struct kbi_task *self)
{
	a_own_inc(&self->np);
	kbi_compiler_barrier();
}

static inline void kbi_np_leave(struct kbi_task *self)
{
	kbi_compiler_barrier();
	a_own_dec(&self->np);
}

#endif
