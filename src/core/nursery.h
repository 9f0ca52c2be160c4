/* core/nursery.h - a kernel thread that makes spares before they are needed, and what they are made of (core/stock), and
 * others for a thread whose own kernel thread is not as the rest (kbi_body_maker). That takes locks of libc, of the loader
 * and of the program's allocator, and the thread whose call blocks may have one of them: so it is not done by the lookout,
 * which all others wait for: that takes from the stock.
 * Callers: handoff. Calls spare, body_thread, stock. */
#ifndef KBI_NURSERY_H
#define KBI_NURSERY_H

#include <stdbool.h>

/* Once. Without it kbi_nursery_ask makes them itself. */
void kbi_nursery_start(void);
bool kbi_nursery_runs(void);
/* No spare waits and none is on its way. False: there will be none, either. */
bool kbi_nursery_ask(void);

#endif
