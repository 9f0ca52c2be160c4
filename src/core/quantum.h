/* core/quantum.h - the quantum: a thread that computes for longer while threads wait on its VP is
 * switched away; a thread that is in a blocking call for longer loses its VP. Why so:
 * doc/why/preemption.md.
 * Callers: boot, posix. Calls sysmon, preempt, handoff, turn. */
#ifndef KBI_QUANTUM_H
#define KBI_QUANTUM_H

#include "core/vp.h"

/* Starts preemption if the option quantum is set: it needs sysmon. Returns 0, EAGAIN or
 * ENOMEM. Once, at start. */
int kbi_quantum_start(void);
/* Returns the bytes below this stack pointer on a stack that is not the thread's own, in the
 * drop-in an alternate signal stack; 0: the caller is on no such stack. NULL: there are none. */
extern KBI_HIDDEN size_t (*kbi_quantum_room)(uintptr_t sp);

/* Returns true if the address is libc's or the loader's, and threads that wait for locks in there
 * wait as lightweight threads: then a thread may be switched away there. NULL: they wait in the
 * kernel. */
extern KBI_HIDDEN bool (*kbi_quantum_libcs)(uintptr_t at);

/* Ends self's turn if it has been over for a while without self having been met where a thread may
 * be left. self runs outside the library and may be suspended. */
KBI_SWITCHES void kbi_quantum_obey(struct kbi_task *self);
static inline bool kbi_quantum_is_over(const struct kbi_task *self)
{
	return kbi_unlikely(a_load_rlx(&self->vp->asked));
}

#endif
