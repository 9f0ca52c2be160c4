/* core/steal_request.h - steal requests: an idle VP asks a busy VP for some of its ready tasks.
 * Only where a VP's ready tasks are private to it (private_ready).
 * Callers: core/agent, core/thread. */
#ifndef KBI_STEAL_REQUEST_H
#define KBI_STEAL_REQUEST_H

#include "core/vp.h"

/* An idle VP's memory of its requests; owner only. */
struct kbi_steal_request {
	uint64_t at;               /* ns: when it last looked for a VP that could give work */
	const struct kbi_vp *rich; /* that VP; NULL: none */
	uint64_t turns;            /* the number of turns that rich's threads had had then */
	uint64_t ticked; /* the number of turns at which rich got the tick; UINT64_MAX: it got none */
};

/* Asks the richest VP for work. The caller, vp, has polled for longer than a message takes. now:
 * ns. */
void kbi_steal_request_send(struct kbi_vp *vp, struct kbi_steal_request *a, uint64_t now);
/* Asks for work while vp still has its last task. */
void kbi_steal_request_ahead(struct kbi_vp *vp);
/* Called when a thread of vp has ended and t is next. If t is the last task that vp was given while
 * it was idle, vp asks ahead. Returns t. */
static inline struct kbi_task *kbi_steal_request_at_end(struct kbi_vp *vp, struct kbi_task *t)
{
	if (kbi_unlikely(vp->fed_at) && t && !vp->first && !vp->s->pq.head)
		kbi_steal_request_ahead(vp);
	return t;
}

#endif
