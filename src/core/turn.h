/* core/turn.h - the end of a turn by force: who is switched away by the tick, who is next, and what each has had.
 * Runs in the tick's handler, on the interrupted thread's stack. Why so: doc/why/preemption.md.
 * Callers: quantum. Calls run, preempt, vp. */
#ifndef KBI_TURN_H
#define KBI_TURN_H

#include <ucontext.h>

#include "core/vp.h"

/* self, outside the library, has had its turn: `used` ns of processor time. Returns when it has the next one, perhaps
 * on another VP. */
KBI_SWITCHES void kbi_turn_end(struct kbi_task *self, ucontext_t *uc, uint64_t used);

/* The body's processor time, ns; 0: not told. tid 0: the caller's. */
uint64_t kbi_turn_cpu(int tid);

#endif
