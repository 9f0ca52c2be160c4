/* sync/barrier.h - barriers for the drop-in: with a reason to stop.
 * Callers: posix. Argument in barrier.c. */
#ifndef KBI_BARRIER_H
#define KBI_BARRIER_H

#include <kochab/sync.h>

#include "sync/waitq.h"

/* Waits as kb_barrier_timedwait; also returns the result of until.stop: the
 * caller no longer counts then. */
KBI_SWITCHES int kbi_barrier_wait(kb_barrier_t *b, struct kbi_until until);

/* Resets the queue in the child of fork, before any other use: threads that waited do not exist in
 * the child, but count as arrived. */
void kbi_barrier_orphan(kb_barrier_t *b);

#endif
