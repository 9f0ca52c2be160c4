/* sync/sem.h - waiting on a semaphore for the drop-in: with a reason to stop.
 * Callers: posix. Argument in sem.c. */
#ifndef KBI_SEM_H
#define KBI_SEM_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* Waits as kb_sem_timedwait; also returns the result of until.stop. A token that has been given is
 * never lost: the result is 0 then. */
KBI_SWITCHES int kbi_sem_wait(kb_sem_t *s, struct kbi_until until);
/* As kbi_sem_wait; the caller has asked stop already. */
KBI_SWITCHES int kbi_sem_wait_asked(kb_sem_t *s, struct kbi_until until);
/* Posts as kb_sem_post, without the way through the dynamic linker's table. */
int kbi_sem_post(kb_sem_t *s);

/* Resets the object in the child of fork, before any other use: the threads that waited or worked
 * on the queue do not exist in the child. */
void kbi_sem_orphan(kb_sem_t *s);

#endif
