/* core/sched_priv.h - for the schedulers only: memory, chains of tasks, the list of VPs to wake.
 * Callers: core/sched_*. Owner VP only, but for what is said. */
#ifndef KBI_SCHED_PRIV_H
#define KBI_SCHED_PRIV_H

#include "core/sched.h"

/* Zeroed, cache-line aligned, no page is touched before it is used; NULL: no memory. At init and fini only. */
void *kbi_sched_alloc(size_t size);
void kbi_sched_free(void *p);

static inline bool kbi_sched_idles(const struct kbi_sched_vp *s)
{
	return a_load_rlx(&s->idle) != KBI_IDLE_BUSY;
}

/* How many VPs but s have nothing to run. Relaxed and perhaps late: a hint. */
static inline unsigned kbi_sched_idle_others(const struct kbi_sched_vp *s)
{
	unsigned n = a_load_rlx(&s->all[0].idle_count), me = kbi_sched_idles(s);

	return n > me ? n - me : 0;
}

/* After publishing for v and a full fence: names v for waking if it sleeps. The fence's partner is the
 * sleeper's, between its store of SLEEPING and its last poll: one of the two sees the other. */
static inline void kbi_sched_wake_add(struct kbi_sched_wake *wake, const struct kbi_sched_vp *v)
{
	if (a_load_rlx(&v->idle) != KBI_IDLE_SLEEPING)
		return;
	for (unsigned i = 0; i < wake->n; i++)
		if (wake->vp[i] == v->id)
			return;
	wake->vp[wake->n++] = v->id;
}

/* Takes a task that has just come in into the Protect Queue. The caller fences before it returns (law 3).
 * release: partner is whoever reads the state word with acquire (core/wait, core/dump). */
static inline void kbi_sched_accept(struct kbi_sched_vp *s, struct kbi_task *t)
{
	a_store_rel(&t->state, KBI_STATE(KBI_TASK_READY, s->id));
	kbi_pq_append(&s->pq, t);
}

/* After publishing for anybody and a full fence: names up to `most` sleepers, the nearest first, unless some VP
 * polls; that one will find what was published, or will see it in its last poll before it sleeps. */
static inline void kbi_sched_wake_any(struct kbi_sched_wake *wake, const struct kbi_sched_vp *s, unsigned most)
{
	for (unsigned d = 1; d < s->nvps; d++)
		if (a_load_rlx(&s->all[(s->id + d) % s->nvps].idle) == KBI_IDLE_POLLING)
			return;
	if (most > kbi_countof(wake->vp))
		most = kbi_countof(wake->vp);
	for (unsigned d = 1; d < s->nvps && wake->n < most; d++)
		kbi_sched_wake_add(wake, &s->all[(s->id + d) % s->nvps]);
}

/* At a tick: has one thread run since the last one? Then the one that was to run next, *first, still is. The caller
 * sets *first to the head of the Protect Queue when it is done. */
static inline bool kbi_sched_hogged(const struct kbi_sched_vp *s, const struct kbi_task *first)
{
	return first && first == s->pq.head;
}

/* Publishes the load when it has changed; *shadow is the owner's copy. */
static inline void kbi_sched_publish_load(struct kbi_sched_vp *s, uint32_t *shadow, uint32_t load)
{
	if (*shadow == load)
		return;
	*shadow = load;
	a_store_rlx(&s->load, load);
}

#endif
