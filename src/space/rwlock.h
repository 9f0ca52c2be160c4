/* space/rwlock.h - what the cleaner of readers-writer locks does. */
#ifndef KBI_SPACE_RWLOCK_H
#define KBI_SPACE_RWLOCK_H

#include "space/thing.h"

/* What that process held is given back. Under the lock, which may have been taken over in the middle of anything. */
void kbi_space_rwlock_orphan(struct kbi_space_thing *t, unsigned slot);

#endif
