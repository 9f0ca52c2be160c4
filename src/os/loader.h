/* os/loader.h - the dynamic loader's locks. A thread that has one may have come back to the program's code from inside
 * the loader, to an allocator of its own: if it is switched away there whoever wants the lock waits in the kernel, and
 * so does whoever makes a kernel thread.
 * Callers: core/quantum. */
#ifndef KBI_LOADER_H
#define KBI_LOADER_H

#include "base/base.h"

/* Once, while there is a single thread, which has a control block of libc's: where the locks lie. False: not found,
 * and that was said; true where there is no loader, too. */
bool kbi_loader_learn(void);
/* Has the calling thread one of them? It is one that has a control block of its own. Not known: false. In handlers, too. */
bool kbi_loader_is_held(void);

#endif
