/* core/worker_maker.h - the worker maker: a kernel thread that makes idle workers before they are
 * needed, and fills the stock (core/stock); it also makes kernel threads for a thread whose own one
 * has attributes that differ (kbi_worker_maker). Making takes locks of libc, the loader and the
 * program's allocator, and the thread whose call blocks may hold such a lock. So sysmon, for
 * which all VPs wait, makes none: it takes from the stock.
 * Callers: handoff, lending. Calls worker_pool, worker_thread, stock. */
#ifndef KBI_WORKER_MAKER_H
#define KBI_WORKER_MAKER_H

#include <stdbool.h>

/* Starts that kernel thread; once. Without it kbi_worker_maker_ask makes the workers itself. */
void kbi_worker_maker_start(void);
/* Returns true if that kernel thread runs. */
bool kbi_worker_maker_runs(void);
/* Asks for an idle worker when none waits and none is on its way. Returns false if there will be
 * none. */
bool kbi_worker_maker_ask(void);

#endif
