/* sync/cond.h - waiting on a condition variable for the drop-in: with a reason to
 * stop, and round any lock.
 * Callers: posix. Contract of the queue in waitq.h; argument in cond.c. */
#ifndef KBI_COND_H
#define KBI_COND_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* Waits as kb_cond_timedwait; also returns the result of until.stop. The mutex is held again
 * whatever the result is, except EPERM. A waiter that has been signalled returns 0 even if its
 * deadline has passed or stop would end the wait. */
KBI_SWITCHES int kbi_cond_wait(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until);

/* As kbi_cond_wait; the caller has asked stop already. */
KBI_SWITCHES int kbi_cond_wait_asked(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until);
/* Signals as kb_cond_signal, without the way through the dynamic linker's table. */
int kbi_cond_signal(kb_cond_t *c);

/* Waits with a lock that is not a kb_mutex_t: queues the caller, calls unlock(lock), sleeps; the
 * caller locks again. If unlock fails, the caller does not wait, since it does not hold the lock:
 * returns the error negated. */
KBI_SWITCHES int kbi_cond_wait_any(kb_cond_t *c, int (*unlock)(void *), void *lock,
	struct kbi_until until);

/* Resets the object in the child of fork, before any other use: the threads that waited or worked
 * on the queue do not exist in the child. */
void kbi_cond_orphan(kb_cond_t *c);

#endif
