/* sync/cond.h - waiting on a condition variable, for the drop-in: with a reason to stop.
 * Callers: posix. */
#ifndef KBI_COND_H
#define KBI_COND_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* As kb_cond_timedwait; also returns what until.stop said. The mutex is held again whatever it returns, but
 * for EPERM. A waiter that has been signalled returns 0 even if its time is over or stop would say so. */
KBI_SWITCHES int kbi_cond_wait(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until);

/* The same; the caller has asked stop already. */
KBI_SWITCHES int kbi_cond_wait_asked(kb_cond_t *c, kb_mutex_t *m, struct kbi_until until);
/* kb_cond_signal without the way through the dynamic linker's table. */
int kbi_cond_signal(kb_cond_t *c);

/* The same round a lock that is not a kb_mutex_t: enter, release that lock, sleep; the caller takes it again. Where unlock
 * fails nobody waits, and the caller does not hold it: its error, below 0. */
KBI_SWITCHES int kbi_cond_wait_any(kb_cond_t *c, int (*unlock)(void *), void *lock, struct kbi_until until);

/* In the child of fork, before anybody else uses it: whoever waited or worked on the queue is not
 * there. */
void kbi_cond_orphan(kb_cond_t *c);

#endif
