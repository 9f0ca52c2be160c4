/* core/slice.c - fair turns at calls. Contract in slice.h. Runs on the caller's stack, inside np
 * brackets.
 *
 * The caller goes behind all ready threads. Next is the first thread that is not known to compute:
 * a computing thread would have the VP until the tick, for a thousand times as long, each time. (A
 * thread that computes with Python's lock is woken whenever another thread releases the lock for a
 * call.) But computing threads have their part as well. After a turn that the tick has ended such a
 * thread waits until the callers have had a quantum each; if it has been woken since then, half a
 * quantum.
 *
 * The rotator's ready tasks are all in the Protect Queue: the choice is made by a look along it.
 * The other schedulers keep tasks where any VP may take them, or move tasks when a task is pushed:
 * there the next task is popped, as a yield does, and threads that were passed over go back in
 * front of the Protect Queue. So each scheduler keeps its order and balance. */
#include "core/slice.h"

#include "base/option.h"
#include "core/run.h"
#include "core/timer.h"
#include "core/yield.h"

enum {
	LOOK_NS = 50000, /* ns between two looks at deadlines, events and other VPs' work, if nothing
	                  * else looks: a look is a system call */
	QUIETLY = 4,     /* calls between two looks at the clock (20 ns) where no thread is ready */
	PASS_MOST = 64,  /* threads that are passed over at most */
	PARTS_MOST = 64, /* quanta that computing threads wait at most */
	WOKEN_PART = 2,  /* this part of a quantum is enough if they were woken since their last turn */
};

static void begin_slice(struct kbi_vp *vp, uint64_t now)
{
	vp->slice.turn = kbi_vp_turns(vp);
	vp->slice.since = now;
}

/* Returns true if the present turn has lasted ns or more. A turn whose beginning was not seen
 * begins now. */
static bool has_lasted(struct kbi_vp *vp, unsigned ns, uint64_t now)
{
	if (kbi_likely(vp->slice.turn == kbi_vp_turns(vp)))
		return now - vp->slice.since >= ns;
	begin_slice(vp, now);
	return false;
}

static void look_if_due(struct kbi_vp *vp, uint64_t now)
{
	if (now - vp->slice.looked < LOOK_NS)
		return;
	vp->slice.looked = now;
	kbi_run_look_at_all(vp, KBI_POLL_SWITCH);
}

/* ---- ready threads --------------------------------------------------------------------------- */

static struct kbi_task *first_ready(const struct kbi_vp *vp)
{
	return vp->first ? vp->first : vp->s->pq.head;
}

/* Returns the number of ready threads under a scheduler that is not plain. */
static unsigned count_ready(const struct kbi_vp *vp)
{
	return vp->s->pq.n + (vp->sched->outside ? vp->sched->outside(vp->s) : 0);
}

static bool is_any_ready(const struct kbi_vp *vp)
{
	return vp->plain ? first_ready(vp) != NULL : count_ready(vp) > 0;
}

/* Returns the next in the queue. */
static struct kbi_task *next_ready_task(const struct kbi_vp *vp, const struct kbi_task *t)
{
	return t == vp->first ? vp->s->pq.head : t->next;
}

/* ---- the next thread ------------------------------------------------------------------------- */

/* Returns how long `first` has been passed over, ns. */
static uint64_t time_passed_over(struct kbi_vp *vp, const struct kbi_task *first, uint64_t part,
	uint64_t now)
{
	struct kbi_slice *s = &vp->slice;

	/* nobody has looked for a while: most likely it has run meanwhile */
	if (s->passed != first || now - s->passed_last > part)
		s->passed_since = now;
	s->passed = first;
	s->passed_last = now;
	return now - s->passed_since;
}

/* Returns true if it is the turn of the first in the queue, which computes. `callers`: the most
 * that have had their turns meanwhile. */
static bool is_computing_task_due(struct kbi_vp *vp, const struct kbi_task *first, unsigned callers,
	uint64_t now)
{
	uint64_t quantum = (uint64_t)kbi_options.quantum * 1000, part = quantum / WOKEN_PART,
		long_enough = part;

	if (kbi_task_is(first, KBI_TASK_PREEMPTED))
		long_enough = quantum * (callers < PARTS_MOST ? callers : PARTS_MOST);
	else if (now - vp->slice.since >= part)
		return true;
	return time_passed_over(vp, first, part, now) >= long_enough;
}

static bool is_computing_task(const struct kbi_task *t)
{
	return kbi_task_is(t, KBI_TASK_COMPUTES);
}

/* Takes the rotator's next thread, or returns NULL: the caller goes on. */
static struct kbi_task *take_first_caller(struct kbi_vp *vp, uint64_t now)
{
	struct kbi_task *first = first_ready(vp), *t = first;
	unsigned passed = 0;

	for (; t && is_computing_task(t) && passed < PASS_MOST; t = next_ready_task(vp, t))
		passed++;
	if (passed && is_computing_task_due(vp, first, vp->s->pq.n - passed + 1, now)) {
		vp->slice.passed = NULL;
		t = first;
	} else if (!t || is_computing_task(t)) {
		return NULL;
	}
	return kbi_vp_take(vp, t) ? t : NULL;
}

static void put_passed_tasks_back(struct kbi_pq *q, struct kbi_pq *passed)
{
	struct kbi_task *t, *prev;

	for (t = passed->tail; t; t = prev) {
		prev = t->prev;
		kbi_pq_prepend(q, t);
	}
}

/* Does as take_first_caller for the other schedulers. Threads that are passed over stay
 * READY(vp), out of any other VP's reach. */
static struct kbi_task *pop_first_caller(struct kbi_vp *vp, uint64_t now)
{
	struct kbi_pq passed = { 0 };
	struct kbi_task *t = kbi_vp_pop(vp), *next;

	for (; t && is_computing_task(t) && passed.n < PASS_MOST; t = kbi_vp_pop(vp))
		kbi_pq_append(&passed, t);
	next = t && !is_computing_task(t) ? t : NULL;
	if (passed.n &&
	    is_computing_task_due(vp, passed.head, count_ready(vp) + (t != NULL) + 1, now)) {
		vp->slice.passed = NULL;
		next = kbi_pq_pop(&passed);
	}
	if (t && t != next)
		kbi_pq_prepend(&vp->s->pq, t);
	put_passed_tasks_back(&vp->s->pq, &passed);
	return next;
}

/* Takes the next thread, for the caller to run, if the caller has had its turn; else returns
 * NULL. */
static struct kbi_task *take_slice_task(struct kbi_vp *vp, unsigned ns)
{
	uint64_t now;

	if (!is_any_ready(vp) && (a_zero32_rlx(&kbi_source.waiting) || ++vp->slice.quiet % QUIETLY))
		return NULL;
	now = kbi_timer_now();
	if (!has_lasted(vp, ns, now))
		return NULL;
	look_if_due(vp, now);
	return vp->plain ? take_first_caller(vp, now) : pop_first_caller(vp, now);
}

/* ---- the call -------------------------------------------------------------------------------- */

KBI_SWITCHER void kbi_slice_end(struct kbi_task *self, unsigned ns)
{
	struct kbi_task *next;
	struct kbi_vp *vp;

	kbi_slice_note(self);
	kbi_np_enter(self);
	vp = self->vp;
	next = vp ? take_slice_task(vp, ns) : NULL;
	if (next) {
		vp->handovers++; /* counts as another turn for sysmon: the tick is not for a thread
		                  * that has just begun */
		kbi_run_switch_to(vp, self, next, kbi_yield_requeue, self);
		self = kbi_self_raw();
		begin_slice(self->vp, kbi_timer_now());
	}
	kbi_np_leave(self);
}
