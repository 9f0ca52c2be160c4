/* core/ask.h - VPs ask each other for work; only where a VP's ready tasks are its own (private_ready).
 * Callers: core/agent, core/thread. */
#ifndef KBI_ASK_H
#define KBI_ASK_H

#include "core/vp.h"

/* What an idle VP remembers; owner only. */
struct kbi_ask {
	uint64_t at;               /* ns, when it last looked who could give it work: */
	const struct kbi_vp *rich; /* who, NULL: nobody, */
	uint64_t turns;            /* and how many turns its threads had had */
	uint64_t ticked;           /* and at how many of them it got the tick; UINT64_MAX: it did not */
};

/* vp has polled for longer than a message takes. now: ns. */
void kbi_ask_for_work(struct kbi_vp *vp, struct kbi_ask *a, uint64_t now);
void kbi_ask_ahead(struct kbi_vp *vp);
/* A thread of vp has ended, t is next: if it is the last of those that others have given to vp when that was idle, vp asks
 * ahead. Gives t. */
static inline struct kbi_task *kbi_ask_at_end(struct kbi_vp *vp, struct kbi_task *t)
{
	if (kbi_unlikely(vp->fed_at) && t && !vp->first && !vp->s->pq.head)
		kbi_ask_ahead(vp);
	return t;
}

#endif
