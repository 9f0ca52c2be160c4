/* core/quantum.h - the quantum: who computes for longer while others wait on its VP is switched away, who is in a
 * blocking call for longer loses its VP. Why so: doc/why/preemption.md.
 * Callers: boot. Calls lookout, preempt, handoff, thread. */
#ifndef KBI_QUANTUM_H
#define KBI_QUANTUM_H

/* Starts it if the option quantum is set: the lookout must come to be. 0, EAGAIN, ENOMEM. Once, at start. */
int kbi_quantum_start(void);

#endif
