/* core/yield.h - letting others have their turn. Callers: api, sync, posix. Calls run. */
#ifndef KBI_YIELD_H
#define KBI_YIELD_H

#include "core/task.h"

/* Returns at once where nobody else is ready. A kernel thread that is no VP offers its processor. */
KBI_SWITCHES void kbi_yield_now(void);

#endif
