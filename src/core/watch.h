/* core/watch.h - waiting until a memory word changes that a writer changes who does not know Kochab: another
 * process, a device, RDMA. The agent of the waiter's VP polls the word itself. */
#ifndef KBI_WATCH_H
#define KBI_WATCH_H

#include "core/task.h"

/* Waits until the `size` (4 or 8) byte word differs from `old`. 0, ETIMEDOUT. */
KBI_SWITCHES int kbi_watch_wait(const volatile void *word, unsigned size, uint64_t old, uint64_t deadline);

#endif
