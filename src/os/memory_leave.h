/* os/memory_leave.h - a child of fork leaves the shared space (os/memory): it gets a copy of the
 * whole contents, at the old addresses, and shares nothing any more. Parent and child would run on
 * one stack meanwhile; so the parent creates the child, and waits for it, on a stack outside the
 * space, which the child has a private copy of from the beginning.
 * Callers: core/process_fork. */
#ifndef KBI_MEMORY_LEAVE_H
#define KBI_MEMORY_LEAVE_H

struct kbi_leave;

/* Makes that stack and room to work in. Returns NULL if there is no memory. Each process drops it
 * later. */
struct kbi_leave *kbi_leave_prepare(void);
void kbi_leave_drop(struct kbi_leave *l);
void kbi_leave_call(struct kbi_leave *l, void (*fn)(void *), void *arg);
/* Leaves the space. The caller is the child's only kernel thread, inside kbi_leave_call, with all
 * signals blocked, while no process writes into the space. Returns 0; or errno, and the child can
 * only end. Writes into the space during the call are lost. */
int kbi_leave(struct kbi_leave *l);

#endif
