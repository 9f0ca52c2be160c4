/* space/mutex.h - what the cleaner of mutexes does. */
#ifndef KBI_SPACE_MUTEX_H
#define KBI_SPACE_MUTEX_H

#include "space/thing.h"

/* Its owner's process is no more. Under its lock. */
void kbi_space_mutex_orphan(struct kbi_space_thing *t, unsigned slot);

#endif
