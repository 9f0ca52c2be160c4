/* space/mutex.h - cleaning up mutexes after a process.
 * Callers: space/recover, space/mutex.c. */
#ifndef KBI_SPACE_MUTEX_H
#define KBI_SPACE_MUTEX_H

#include "space/thing.h"

/* Marks the mutex broken and frees it, if the slot's process, which is gone, was
 * the owner. Under the lock. */
void kbi_space_mutex_orphan(struct kbi_space_thing *t, unsigned slot);

#endif
