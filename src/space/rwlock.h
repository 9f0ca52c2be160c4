/* space/rwlock.h - cleaning up readers-writer locks after a process.
 * Callers: space/recover, space/rwlock.c. */
#ifndef KBI_SPACE_RWLOCK_H
#define KBI_SPACE_RWLOCK_H

#include "space/thing.h"

/* Gives back the locks of that process. Under the lock, which may have been taken over in the
 * middle of any operation. */
void kbi_space_rwlock_orphan(struct kbi_space_thing *t, unsigned slot);

#endif
