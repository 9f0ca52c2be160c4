/* libc/loader.h - the dynamic loader's locks. A thread that holds such a lock may be back in the
 * program's code, in an allocator of the program's own which the loader has called. If it is
 * switched away there, every kernel thread that wants the lock waits in the kernel, and so does the
 * maker of a kernel thread.
 * Callers: core/quantum. Runs in handlers, too; no locks, no switch. */
#ifndef KBI_LOADER_H
#define KBI_LOADER_H

#include "base/base.h"

/* Finds the locks. Call once, while there is a single thread, which has a control block of libc's.
 * Returns false if they are not found, which is reported; true also where there is no loader. */
bool kbi_loader_learn(void);
/* Returns true if the calling thread, which has a control block of its own, holds one of the locks;
 * false if not known. Also for handlers. */
bool kbi_loader_is_held(void);

#endif
