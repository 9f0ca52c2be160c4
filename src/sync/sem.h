/* sync/sem.h - waiting on a semaphore, for the drop-in: with a reason to stop.
 * Callers: posix. */
#ifndef KBI_SEM_H
#define KBI_SEM_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* As kb_sem_timedwait; also returns what until.stop said. A token that has been given is never lost: the
 * result is 0 then. */
KBI_SWITCHES int kbi_sem_wait(kb_sem_t *s, struct kbi_until until);
/* The same; the caller has asked stop already. */
KBI_SWITCHES int kbi_sem_wait_asked(kb_sem_t *s, struct kbi_until until);
/* kb_sem_post without the way through the dynamic linker's table. */
int kbi_sem_post(kb_sem_t *s);

/* In the child of fork, before anybody else uses it: whoever waited or worked on the queue is not
 * there. */
void kbi_sem_orphan(kb_sem_t *s);

#endif
