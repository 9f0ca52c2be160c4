/* sync/barrier.h - barriers for the drop-in: with a reason to stop.
 * Callers: posix. */
#ifndef KBI_BARRIER_H
#define KBI_BARRIER_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* As kb_barrier_timedwait; also returns what until.stop said: the caller no longer counts then. */
KBI_SWITCHES int kbi_barrier_wait(kb_barrier_t *b, struct kbi_until until);

/* In the child of fork, before anybody else uses it: whoever waited is not there, but counts as come. */
void kbi_barrier_orphan(kb_barrier_t *b);

#endif
