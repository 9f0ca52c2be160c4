/* core/yield.h - letting others have their turn. Callers: api, sync, posix. Calls run. */
#ifndef KBI_YIELD_H
#define KBI_YIELD_H

#include "core/task.h"

/* Behind a switch away from the task: it is ready, behind all that is, on its VP. */
void *kbi_yield_requeue(void *task);
/* Returns at once where nobody else is ready. A kernel thread that is no VP offers its processor. */
KBI_SWITCHES void kbi_yield_now(void);

#endif
