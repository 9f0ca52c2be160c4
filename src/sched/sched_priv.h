/* sched/sched_priv.h - what the schedulers share: memory, accepting tasks, naming VPs to wake.
 * Callers: units of sched, on the owner VP unless a comment says otherwise. No locks; never
 * switches. */
#ifndef KBI_SCHED_PRIV_H
#define KBI_SCHED_PRIV_H

#include "sched/sched.h"

/* Returns zeroed memory, aligned to a cache line, whose pages are touched only when used; NULL:
 * no memory. Called at init and fini only. */
void *kbi_sched_alloc(size_t size);
void kbi_sched_free(void *p);

/* Names v for waking if v sleeps. The caller has published work for v and executed a full fence.
 * The fence pairs with the sleeper's, which stands between its store of SLEEPING and its last
 * poll: the caller or the sleeper sees the store of its partner. */
static inline void kbi_sched_wake_add(struct kbi_sched_wake *wake, const struct kbi_sched_vp *v)
{
	if (a_load_rlx(&v->idle) != KBI_IDLE_SLEEPING)
		return;
	for (unsigned i = 0; i < wake->n; i++)
		if (wake->vp[i] == v->id)
			return;
	wake->vp[wake->n++] = v->id;
}

/* Appends a task that has just come in to the Protect Queue. The caller fences before it returns
 * (law 3). release: pairs with the acquire of any reader of the state word (core/wait,
 * core/dump). */
static inline void kbi_sched_accept(struct kbi_sched_vp *s, struct kbi_task *t)
{
	a_store_rel(&t->state, KBI_STATE(KBI_TASK_READY, s->id));
	kbi_pq_append(&s->pq, t);
}

/* Names up to `most` sleepers, the nearest first, unless some VP polls. The caller has published
 * work for any VP and executed a full fence. A polling VP finds the work, at the latest in its
 * last poll before it sleeps. */
static inline void kbi_sched_wake_any(struct kbi_sched_wake *wake, const struct kbi_sched_vp *s,
	unsigned most)
{
	for (unsigned d = 1; d < s->nvps; d++)
		if (a_load_rlx(&s->all[(s->id + d) % s->nvps].idle) == KBI_IDLE_POLLING)
			return;
	if (most > kbi_countof(wake->vp))
		most = kbi_countof(wake->vp);
	for (unsigned d = 1; d < s->nvps && wake->n < most; d++)
		kbi_sched_wake_add(wake, &s->all[(s->id + d) % s->nvps]);
}

/* At a tick: returns true if one thread has run since the last tick, that is, if *first is still
 * next. The caller then sets *first to the head of the Protect Queue. */
static inline bool kbi_sched_hogged(const struct kbi_sched_vp *s, const struct kbi_task *first)
{
	return first && first == s->pq.head;
}

/* Publishes the load if it has changed; *shadow is the owner's copy. */
static inline void kbi_sched_publish_load(struct kbi_sched_vp *s, uint32_t *shadow, uint32_t load)
{
	if (*shadow == load)
		return;
	*shadow = load;
	a_store_rlx(&s->load, load);
}

#endif
