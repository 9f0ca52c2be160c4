/* os/memory_leave.h - a child of fork leaves the shared space (os/memory): it gets a copy of all that is in it, at the same
 * addresses, and shares nothing any more. Parent and child would work on the same stack meanwhile: so the parent makes
 * the child, and waits for it, on a stack outside, which is a copy in the child from the beginning.
 * Callers: core/body_fork. */
#ifndef KBI_MEMORY_LEAVE_H
#define KBI_MEMORY_LEAVE_H

struct kbi_leave;

/* That stack, and room to work in. NULL: no memory. In either process, later: drop. */
struct kbi_leave *kbi_leave_prepare(void);
void kbi_leave_drop(struct kbi_leave *l);
void kbi_leave_call(struct kbi_leave *l, void (*fn)(void *), void *arg);
/* The child's only kernel thread, in such a call, with all signals blocked, while nobody else writes into the space. 0; or
 * errno, and the child can only end. What was written during the call is lost if it lies in the space. */
int kbi_leave(struct kbi_leave *l);

#endif
