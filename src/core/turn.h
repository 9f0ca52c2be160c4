/* core/turn.h - ends a turn by force: chooses the thread that the tick switches away to, and
 * accounts for the turns. Runs in the tick's handler, on the interrupted thread's stack. Why so:
 * doc/why/preemption.md.
 * Callers: quantum. Calls run, preempt, vp. */
#ifndef KBI_TURN_H
#define KBI_TURN_H

#include <ucontext.h>

#include "core/vp.h"

/* Ends the turn of self, which is outside the library and has used `used` ns of processor time.
 * Returns when self has its next turn, perhaps on another VP. */
KBI_SWITCHES void kbi_turn_end(struct kbi_task *self, ucontext_t *uc, uint64_t used);

/* Returns the processor time of kernel thread tid, ns; 0: unknown. tid 0: the caller's. */
uint64_t kbi_turn_cpu(int tid);

#endif
