/* sched/waiver.c - the Waiver Queue's longer functions. Contract in waiver.h. */
#include "sched/waiver.h"

unsigned kbi_waiver_spill(struct kbi_waiver *w, struct kbi_sched_vp *s, unsigned keep, unsigned to)
{
	struct kbi_task *t = s->pq.tail, *before;
	unsigned n = 0;

	for (; t && s->pq.n - s->pq.bound > keep; t = before) {
		before = t->prev;
		if (kbi_task_is(t, KBI_TASK_BOUND))
			continue;
		if (!kbi_ring_room(&w->head, w->put, KBI_WAIVER_SLOTS))
			break;
		kbi_pq_remove(&s->pq, t);
		kbi_waiver_put(w, t, to);
		n++;
	}
	s->given += n;
	return n;
}

bool kbi_waiver_not_waived(struct kbi_sched_vp *s, struct kbi_task *t)
{
	if (a_load_rlx(&t->state) != KBI_STATE(KBI_TASK_READY, s->id))
		return false;
	kbi_pq_remove(&s->pq, t);
	return true;
}
