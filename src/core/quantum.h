/* core/quantum.h - the quantum: who computes for longer while others wait on its VP is switched away, who is in a
 * blocking call for longer loses its VP. Why so: doc/why/preemption.md.
 * Callers: boot, posix. Calls lookout, preempt, handoff, thread. */
#ifndef KBI_QUANTUM_H
#define KBI_QUANTUM_H

#include "core/vp.h"

/* Starts it if the option quantum is set: the lookout must come to be. 0, EAGAIN, ENOMEM. Once, at start. */
int kbi_quantum_start(void);
/* Bytes of another stack than its own that the caller is on, in the drop-in an alternate signal stack, below this stack
 * pointer; 0: it is on none. NULL: there are none. */
extern KBI_HIDDEN size_t (*kbi_quantum_room)(uintptr_t sp);

/* Is that address libc's or the loader's, and do threads that wait for locks in there wait as lightweight threads? Then a
 * thread may be left there. NULL: they wait in the kernel. */
extern KBI_HIDDEN bool (*kbi_quantum_libcs)(uintptr_t at);

/* self runs, outside the library, and may be suspended: has its turn been over for a while, without its having been
 * met where a thread may be left? Then it ends here. */
KBI_SWITCHES void kbi_quantum_obey(struct kbi_task *self);
static inline bool kbi_quantum_is_over(const struct kbi_task *self)
{
	return kbi_unlikely(a_load_rlx(&self->vp->asked));
}

#endif
