/* core/watch.h - waits for a change of a memory word whose writer does not use Kochab: another
 * process, a device, RDMA. The agent of the waiter's VP polls the word itself.
 * Callers: kb_watch32 and kb_watch64. */
#ifndef KBI_WATCH_H
#define KBI_WATCH_H

#include "sched/task.h"

/* Waits until the word of `size` bytes (4 or 8) differs from `old`. deadline: CLOCK_MONOTONIC, ns.
 * Returns 0 or ETIMEDOUT. */
KBI_SWITCHES int kbi_watch_wait(const volatile void *word, unsigned size, uint64_t old,
	uint64_t deadline);

#endif
