/* core/deadline.h - the deadlines of a domain's tasks, polled by its keeper. A heap whose nodes lie in the descriptors, and
 * stay in it when nobody waits for them any more: most deadlines never come, and the next one of the same task is later,
 * mostly. Then it costs two stores; a node that comes up too soon is put where it belongs by then.
 * np > 0, the caller keeps dom. Callers: domain, timer. */
#ifndef KBI_DEADLINE_H
#define KBI_DEADLINE_H

#include "core/vp.h"

/* A wait with a deadline. On the stack of who waits. */
struct kbi_rest {
	uint64_t until;             /* CLOCK_MONOTONIC, ns */
	struct kb_thread *thread;
	struct kbi_heap_node guest; /* in the heap in place of the descriptor's, which lies in another VP's */
};

/* t, which runs here, is about to wait until then. */
void kbi_deadline_arm(struct kbi_vp *dom, struct kb_thread *t, struct kbi_rest *rest, uint64_t until);
/* KBI_TASK_TIMED: it has been woken, or has not slept. */
void kbi_deadline_disarm(struct kbi_vp *dom, struct kb_thread *t);
/* One whose time has come, still armed; NULL: no more of them. It waits here or is about to. */
struct kb_thread *kbi_deadline_due(struct kbi_vp *dom, uint64_t now);

#endif
