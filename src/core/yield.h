/* core/yield.h - gives ready threads their turn.
 * Callers: api, handoff, quantum, sync, io, posix. Calls run. */
#ifndef KBI_YIELD_H
#define KBI_YIELD_H

#include "sched/task.h"

/* Makes the task ready again, behind all ready tasks of its VP; an `after` of the switch away from
 * the task. */
void *kbi_yield_requeue(void *task);
/* Gives the other ready threads a turn; returns at once where none is ready. A kernel thread that
 * is no VP offers its processor. */
KBI_SWITCHES void kbi_yield_now(void);

#endif
