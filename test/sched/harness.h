/* harness.h - kernel threads play the VPs of a scheduler: push, pop, poll, sleep and wake as
 * core/vp does, with dummy tasks that check on each run that no other VP has them. No runtime is
 * needed. For the tests of this room only. */
#ifndef KB_TEST_SCHED_HARNESS_H
#define KB_TEST_SCHED_HARNESS_H

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sched/sched.h"
#include "test.h"

struct job {
	struct kbi_task task;
	a32 running;  /* 1: some VP runs it */
	a32 finished; /* how often it was finished: must become 1 */
	uint32_t runs; /* runs left */
	unsigned bound; /* KBI_TASK_BOUND: to this VP */
} KBI_ALIGNED(KBI_CACHE_LINE);

struct vps {
	const struct kbi_sched *sched;
	unsigned n;
	struct kbi_sched_vp *s;
	a32 doze[64]; /* 1: sleeps in the futex on this word */
	a64 sleeps, wakes;
};

static inline struct job *job_of(struct kbi_task *t)
{
	return (struct job *)t;
}

static inline void bind(struct job *j, unsigned vp)
{
	j->bound = vp;
	kbi_task_set(&j->task, KBI_TASK_BOUND);
}

static inline struct job *jobs_new(unsigned n)
{
	struct job *j = aligned_alloc(KBI_CACHE_LINE, n * sizeof(*j));

	CHECK(j != NULL);
	memset(j, 0, n * sizeof(*j));
	for (unsigned i = 0; i < n; i++) {
		j[i].task.index = i;
		j[i].runs = 1;
	}
	return j;
}

static inline void vps_init(struct vps *v, const struct kbi_sched *sched, unsigned n,
	unsigned capacity, unsigned lock)
{
	memset(v, 0, sizeof(*v));
	v->sched = sched;
	v->n = n;
	v->s = aligned_alloc(KBI_CACHE_LINE, n * sizeof(*v->s));
	CHECK(v->s != NULL);
	memset(v->s, 0, n * sizeof(*v->s));
	for (unsigned i = 0; i < n; i++) {
		v->s[i].id = i;
		v->s[i].nvps = n;
		v->s[i].all = v->s;
	}
	CHECK_EQ(sched->init(v->s, n, capacity, lock), 0);
}

static inline void vps_fini(struct vps *v)
{
	v->sched->fini(v->s, v->n);
	free(v->s);
}

static inline void set_idle(struct kbi_sched_vp *s, enum kbi_sched_idle now)
{
	unsigned was = a_load_rlx(&s->idle);

	if (was == KBI_IDLE_BUSY && now != KBI_IDLE_BUSY)
		a_add_rlx(&s->all[0].idle_count, 1);
	if (was != KBI_IDLE_BUSY && now == KBI_IDLE_BUSY)
		a_sub_rlx(&s->all[0].idle_count, 1);
	a_store_rlx(&s->idle, now);
}

static inline void rouse(struct vps *v, unsigned id)
{
	if (!a_load_rlx(&v->doze[id]) || !a_xchg_rlx(&v->doze[id], 0))
		return;
	a_add_rlx(&v->wakes, 1);
	syscall(SYS_futex, &v->doze[id].v_, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline unsigned exchange(struct vps *v, struct kbi_sched_vp *s, enum kbi_sched_why why)
{
	struct kbi_sched_wake wake = { .n = 0 };
	unsigned got = v->sched->poll(s, why, &wake);

	CHECK(wake.n <= kbi_countof(wake.vp));
	for (unsigned i = 0; i < wake.n; i++) {
		CHECK(wake.vp[i] < v->n && wake.vp[i] != s->id);
		rouse(v, wake.vp[i]);
	}
	return got;
}

static inline void push_only(struct vps *v, struct kbi_sched_vp *s, struct kbi_task *t, bool front)
{
	a_store_rlx(&t->state, KBI_STATE(KBI_TASK_READY, s->id));
	if (v->sched->push)
		v->sched->push(s, t, front);
	else if (front)
		kbi_pq_prepend(&s->pq, t);
	else
		kbi_pq_append(&s->pq, t);
}

static inline void push(struct vps *v, struct kbi_sched_vp *s, struct kbi_task *t, bool front)
{
	push_only(v, s, t, front);
	if (a_load_rlx(&v->s[0].idle_count))
		exchange(v, s, KBI_POLL_PUSH);
}

static inline struct kbi_task *pop(struct vps *v, struct kbi_sched_vp *s)
{
	struct kbi_task *t = v->sched->pop ? v->sched->pop(s) : kbi_pq_pop(&s->pq);

	if (!t)
		return NULL;
	CHECK_EQ(a_load_acq(&t->state), KBI_STATE(KBI_TASK_READY, s->id));
	CHECK(!kbi_task_is(t, KBI_TASK_BOUND) || job_of(t)->bound == s->id);
	CHECK_EQ(a_xchg_rlx(&job_of(t)->running, 1), 0);
	a_store_rlx(&t->state, KBI_STATE(KBI_TASK_RUNNING, s->id));
	return t;
}

static inline bool take(struct vps *v, struct kbi_sched_vp *s, struct kbi_task *t)
{
	if (v->sched->take)
		return v->sched->take(s, t);
	if (v->sched->push)
		return false;
	kbi_pq_remove(&s->pq, t);
	return true;
}

/* Sleeps in the kernel as core/agent does. Returns false if work came in at the last look. */
static inline bool doze(struct vps *v, struct kbi_sched_vp *s, const a32 *stop)
{
	set_idle(s, KBI_IDLE_SLEEPING);
	a_store_rlx(&v->doze[s->id], 1);
	a_fence_sc(); /* partner: the fence of a scheduler that has published for us, before it reads
	               * idle */
	if (exchange(v, s, KBI_POLL_IDLE) || a_load_acq(stop)) {
		a_store_rlx(&v->doze[s->id], 0);
		return false;
	}
	a_add_rlx(&v->sleeps, 1);
	while (a_load_rlx(&v->doze[s->id]))
		syscall(SYS_futex, &v->doze[s->id].v_, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	return true;
}

/* Returns true for a scheduler named on the command line or in KOCHAB_SCHED, or if none is
 * named. */
static inline bool wanted(const struct kbi_sched *sched, int argc, char **argv)
{
	const char *env = getenv("KOCHAB_SCHED");

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], sched->name))
			return true;
	return argc < 2 && (!env || !strcmp(env, sched->name));
}

#endif
