/* core/preempt.h - the tick: a signal to the body of a VP whose thread has not switched for long while work waits
 * behind it. The handler gives the waiting work away; it does not switch threads. Sent by a sleeping VP's agent
 * (there is no timer when nothing is stuck). */
#ifndef KBI_PREEMPT_H
#define KBI_PREEMPT_H

#include "core/vp.h"

/* Ignored by default and rarely used: harmless if it ever arrives elsewhere. */
#define KBI_TICK_SIGNAL SIGURG

enum { KBI_SIGNAL_STACK = 32768 };

/* Installs the handlers of the tick and of faults in guard pages. */
void kbi_preempt_setup(void);
/* An alternate signal stack for the kernel thread that calls: overflow of a thread's stack is reported on it.
 * KBI_SIGNAL_STACK bytes, or NULL. */
void *kbi_preempt_alt_stack(void);
/* It ends. */
void kbi_preempt_no_alt_stack(void *stack);
void kbi_preempt_send(struct kbi_vp *vp);
/* What its handler does, for a handler of the program's on the same signal. */
void kbi_preempt_tick(int sig);

#endif
