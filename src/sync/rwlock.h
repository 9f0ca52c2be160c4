/* sync/rwlock.h - readers-writer locks for the drop-in: with a reason to stop.
 * Callers: posix. Argument in rwlock.c. */
#ifndef KBI_RWLOCK_H
#define KBI_RWLOCK_H

#include <kochab/sync.h>

#include "sync/waitq.h"

KBI_SWITCHES int kbi_rwlock_rdlock(kb_rwlock_t *l, struct kbi_until until);
KBI_SWITCHES int kbi_rwlock_wrlock(kb_rwlock_t *l, struct kbi_until until);

/* Resets the queue in the child of fork, before any other use: the threads that waited or worked on
 * the queue do not exist in the child. */
void kbi_rwlock_orphan(kb_rwlock_t *l);

#endif
