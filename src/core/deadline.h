/* core/deadline.h - the deadlines of a domain's tasks, polled by the domain's keeper. The nodes
 * of the heap lie in the descriptors. A node stays in the heap after its wait has ended: most
 * deadlines never come, and the next deadline of a task is usually later. Then arming costs two
 * stores, and a node that comes up too soon is put where it belongs by then.
 * Callers: domain, timer; with np > 0, as keeper of dom. No locks; never switches. */
#ifndef KBI_DEADLINE_H
#define KBI_DEADLINE_H

#include "core/vp.h"

/* A wait with a deadline. It lies on the waiter's stack. */
struct kbi_rest {
	uint64_t until;             /* CLOCK_MONOTONIC, ns */
	struct kb_thread *thread;
	/* in the heap in place of the descriptor's node while that is in another VP's heap */
	struct kbi_heap_node guest;
};

/* Arms the deadline of t, which runs here and is about to wait until `until`. */
void kbi_deadline_arm(struct kbi_vp *dom, struct kb_thread *t, struct kbi_rest *rest,
	uint64_t until);
/* Disarms a task with KBI_TASK_TIMED, which has been woken or has not slept. */
void kbi_deadline_disarm(struct kbi_vp *dom, struct kb_thread *t);
/* Returns a thread whose time has come, still armed; NULL: no more of them. It waits here or is
 * about to wait. */
struct kb_thread *kbi_deadline_due(struct kbi_vp *dom, uint64_t now);

#endif
