/* sync/rwlock.h - readers-writer locks for the drop-in: with a reason to stop.
 * Callers: posix. */
#ifndef KBI_RWLOCK_H
#define KBI_RWLOCK_H

#include <kochab/sync.h>

#include "sync/waitq.h"

KBI_SWITCHES int kbi_rwlock_rdlock(kb_rwlock_t *l, struct kbi_until until);
KBI_SWITCHES int kbi_rwlock_wrlock(kb_rwlock_t *l, struct kbi_until until);

/* In the child of fork, before anybody else uses it: whoever waited or worked on the queue is not
 * there. */
void kbi_rwlock_orphan(kb_rwlock_t *l);

#endif
