/* core/slice.c - fair turns at calls. Contract in slice.h. Runs on the caller's stack, inside np brackets.
 *
 * The caller goes behind all that is ready. Next is the first thread that is not known to compute: a computing thread would
 * have the VP until the tick, for a thousand times as long, each time. (A thread that computes with Python's lock is woken
 * whenever another thread lets go of the lock for a call.) But computing threads have their part as well. After a turn that
 * the tick has ended such a thread waits until the callers have had a quantum each; if it has been woken since then, half a
 * quantum. So it is under the rotator. The other schedulers keep ready tasks where any VP may take them: there turns end by
 * the tick only. */
#include "core/slice.h"

#include "base/option.h"
#include "core/run.h"
#include "core/timer.h"
#include "core/yield.h"

enum {
	LOOK_NS = 50000, /* so often at deadlines, events and other VPs' work, if nothing else looks: it is a system call */
	QUIETLY = 4,     /* calls to a look at the clock where nobody is ready: that takes 20 ns */
	PASS_MOST = 64,  /* threads that are passed over */
	PARTS_MOST = 64, /* quanta that computing threads wait at most; */
	WOKEN_PART = 2,  /* this part of a quantum, if they were woken since their last turn */
};

static void begin(struct kbi_vp *vp, uint64_t now)
{
	vp->slice.turn = kbi_vp_turns(vp);
	vp->slice.since = now;
}

/* The turn that lasts has been so long. A turn that nobody has seen begin begins now. */
static bool has_lasted(struct kbi_vp *vp, unsigned ns, uint64_t now)
{
	if (kbi_likely(vp->slice.turn == kbi_vp_turns(vp)))
		return now - vp->slice.since >= ns;
	begin(vp, now);
	return false;
}

static void look_if_due(struct kbi_vp *vp, uint64_t now)
{
	if (now - vp->slice.looked < LOOK_NS)
		return;
	vp->slice.looked = now;
	kbi_run_look_at_all(vp, KBI_POLL_SWITCH);
}

static struct kbi_task *first_ready(const struct kbi_vp *vp)
{
	return vp->first ? vp->first : vp->s->pq.head;
}

/* Next in the queue. */
static struct kbi_task *behind(const struct kbi_vp *vp, const struct kbi_task *t)
{
	return t == vp->first ? vp->s->pq.head : t->next;
}

/* For how long first has been passed over. */
static uint64_t waited(struct kbi_vp *vp, const struct kbi_task *first, uint64_t part, uint64_t now)
{
	struct kbi_slice *s = &vp->slice;

	/* after a while that nobody has looked it has most likely run meanwhile */
	if (s->passed != first || now - s->passed_last > part)
		s->passed_since = now;
	s->passed = first;
	s->passed_last = now;
	return now - s->passed_since;
}

/* Is it the turn of the first in the queue, which computes? `callers`: so many at most have had theirs meanwhile. */
static bool is_due(struct kbi_vp *vp, const struct kbi_task *first, unsigned callers, uint64_t now)
{
	uint64_t quantum = (uint64_t)kbi_options.quantum * 1000, part = quantum / WOKEN_PART, long_enough = part;

	if (kbi_task_is(first, KBI_TASK_PREEMPTED))
		long_enough = quantum * (callers < PARTS_MOST ? callers : PARTS_MOST);
	else if (now - vp->slice.since >= part)
		return true;
	return waited(vp, first, part, now) >= long_enough;
}

/* The next thread, or NULL: the caller goes on. */
static struct kbi_task *choose(struct kbi_vp *vp, uint64_t now)
{
	struct kbi_task *first = first_ready(vp), *t = first;
	unsigned passed = 0;

	for (; t && kbi_task_is(t, KBI_TASK_COMPUTES) && passed < PASS_MOST; t = behind(vp, t))
		passed++;
	if (!passed || !is_due(vp, first, vp->s->pq.n - passed + 1, now))
		return t && !kbi_task_is(t, KBI_TASK_COMPUTES) ? t : NULL;
	vp->slice.passed = NULL;
	return first;
}

/* The next thread, if the caller has had its turn. */
static struct kbi_task *next_of(struct kbi_vp *vp, unsigned ns)
{
	uint64_t now;

	if (!first_ready(vp) && ++vp->slice.quiet % QUIETLY)
		return NULL;
	now = kbi_timer_now();
	if (!has_lasted(vp, ns, now))
		return NULL;
	look_if_due(vp, now);
	return choose(vp, now);
}

KBI_SWITCHER void kbi_slice_end(struct kbi_task *self, unsigned ns)
{
	struct kbi_task *next;
	struct kbi_vp *vp;

	kbi_slice_note(self);
	kbi_np_enter(self);
	vp = self->vp;
	next = vp ? next_of(vp, ns) : NULL;
	if (next && kbi_vp_take(vp, next)) {
		kbi_run_switch_to(vp, self, next, kbi_yield_requeue, self);
		self = kbi_self_raw();
		begin(self->vp, kbi_timer_now());
	}
	kbi_np_leave(self);
}
