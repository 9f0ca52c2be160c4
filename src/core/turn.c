/* core/turn.c - the end of a turn by force. Contract in turn.h.
 *
 * Threads that were switched away by force are marked as long as they are ready, and have a virtual
 * time: the time that they have used of the processor. At such a switch ready threads without the
 * mark go first: a thread that wakes up waits for the end of a single turn and not for a round of
 * computing threads. First among these are threads that are not known to compute: a thread that was
 * woken by a lock amid its work may compute for a whole turn, too.
 *
 * Of the marked threads the thread with the least virtual time is next, perhaps the running thread
 * itself. So each has an equal part of the VP, whatever the kernel gives the VP's worker, however a
 * turn is cut short, and however long it takes until a thread can be switched away. A VP's clock is
 * the virtual time of the thread that it chose last: there a thread begins that has none; a thread
 * that comes from another VP keeps its own, within bounds.
 *
 * After two quanta's worth of turns a thread goes to the next VP, if that has no more to run: so
 * threads go round, and each has an equal part of all VPs, though a processor may be slower or have
 * a thread more.
 *
 * The virtual time lies beside the thread's deadline, in a union with a word that a ready thread
 * does not use. */
#include "core/turn.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/option.h"
#include "core/preempt.h"
#include "core/run.h"
#include "core/wait.h"
#include "libc/broadcast.h"
#include "libc/return_hook.h"
#include "os/sys.h"
#include "sched/sched.h"

enum {
	LOOK_MAX = 1024, /* ready tasks that are looked at */
	FAR = 2,         /* quanta by which a virtual time may be before or behind the clock */
	ROTATE = 2,      /* quanta after which a thread goes on to the next VP */
	MASK_BYTES = 8,
};

/* Where a thread goes after its turn. */
struct end {
	struct kbi_task *task, *behind; /* task goes behind this task; NULL with `stays`: in front */
	struct kbi_vp *vp, *to;         /* to: another VP; NULL: it stays at vp */
	bool stays;                     /* it is itself the next of the marked threads */
	bool share; /* some VP is idle: the scheduler may give the task away at once */
};

static uint64_t quantum_ns(void)
{
	return (uint64_t)kbi_options.quantum * 1000;
}

uint64_t kbi_turn_cpu(int tid)
{
	/* the kernel names the clock of a thread by its number, inverted, and "of a thread, as
	 * scheduled" */
	return kbi_sys_clock(tid ? (int)(~(unsigned)tid << 3 | 6) : CLOCK_THREAD_CPUTIME_ID);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool is_fresh(const struct kbi_task *t)
{
	return !kbi_task_is(t, KBI_TASK_PREEMPTED);
}

static uint64_t *virtual_time(struct kbi_task *t)
{
	return &kbi_thread_of(t)->turn_time;
}

/* Returns t's virtual time, put within bounds: t perhaps comes from another VP, or could not be
 * switched away for long. */
static uint64_t bounded_time_of(const struct kbi_vp *vp, struct kbi_task *t)
{
	uint64_t clock = a_load_rlx(&vp->turn.clock), far = FAR * quantum_ns(),
		*v = virtual_time(t);

	if (*v > clock + far)
		*v = clock + far;
	else if (*v + far < clock)
		*v = clock - far;
	return *v;
}

static void put_task_behind(struct kbi_pq *q, struct kbi_task *t, struct kbi_task *before)
{
	if (!before) {
		kbi_pq_prepend(q, t);
		return;
	}
	if (!before->next) {
		kbi_pq_append(q, t);
		return;
	}
	t->prev = before;
	t->next = before->next;
	before->next->prev = t;
	before->next = t;
	q->n++;
	q->bound += kbi_task_is(t, KBI_TASK_BOUND);
}

/* Puts all ready tasks here into the Protect Queue, unless an idle VP is to have them. */
static void gather_ready_tasks(struct kbi_vp *vp)
{
	if (vp->first) {
		kbi_pq_prepend(&vp->s->pq, vp->first);
		vp->first = NULL;
	}
	if (vp->sched->gather && !kbi_sched_idle_others(vp->s))
		vp->sched->gather(vp->s, LOOK_MAX);
}

/* Moves the fresh threads, down to `last`, that are not known to compute to the front, in their
 * order. Returns the last of the fresh threads then, or NULL. */
static struct kbi_task *put_callers_first(struct kbi_pq *q, struct kbi_task *last)
{
	struct kbi_task *t, *prev, *moved = NULL, *rest = NULL;

	for (t = last; t && t != moved; t = prev) {
		prev = t->prev;
		if (kbi_task_is(t, KBI_TASK_COMPUTES)) {
			if (!rest)
				rest = t;
			continue;
		}
		kbi_pq_remove(q, t);
		kbi_pq_prepend(q, t);
		if (!moved)
			moved = t;
	}
	return rest ? rest : last;
}

/* Moves fresh threads to the front. Returns the last of them, or NULL. *least: the marked thread
 * that is next. */
static struct kbi_task *sort_fresh_first(struct kbi_vp *vp, struct kbi_task **least)
{
	struct kbi_pq *q = &vp->s->pq;
	struct kbi_task *t, *prev, *moved = NULL;
	unsigned n = 0;

	*least = NULL;
	for (t = q->tail; t && t != moved && n < LOOK_MAX; t = prev, n++) {
		prev = t->prev;
		if (!is_fresh(t)) {
			if (!*least || bounded_time_of(vp, t) <= *virtual_time(*least))
				*least = t;
			continue;
		}
		kbi_pq_remove(q, t);
		kbi_pq_prepend(q, t);
		if (!moved)
			moved = t;
	}
	return put_callers_first(q, moved);
}

/* Orders the ready tasks, and finds the place of the running task. */
static void arrange_ready_tasks(struct kbi_vp *vp, struct end *e)
{
	uint64_t mine = bounded_time_of(vp, e->task), next = mine;
	struct kbi_task *least;

	gather_ready_tasks(vp);
	e->behind = sort_fresh_first(vp, &least);
	e->stays = !least || mine < *virtual_time(least);
	if (!e->stays) {
		next = *virtual_time(least);
		kbi_pq_remove(&vp->s->pq, least);
		put_task_behind(&vp->s->pq, least, e->behind);
	}
	if (next > a_load_rlx(&vp->turn.clock))
		a_store_rlx(&vp->turn.clock, next);
}

/* ---- to the next VP -------------------------------------------------------------------------- */

/* Returns the next VP, if it can take a thread; else NULL. A VP whose thread was asked to leave and
 * does not is no place to wait at. */
static struct kbi_vp *find_rotation_target(const struct kbi_vp *vp)
{
	struct kbi_vp *to = kbi_vps[(vp->id + 1) % kbi_vp_n];

	if (to == vp || a_load_rlx(&to->s->idle) != KBI_IDLE_BUSY || a_load_rlx(&to->asked) ||
	    a_load_rlx(&to->lent))
		return NULL;
	return vp->s->pq.n + 1 >= a_load_rlx(&to->s->load) ? to : NULL;
}

static void rotate_to_next_vp(struct kbi_vp *vp, struct end *e, uint64_t used)
{
	vp->turn.to_rotate -= (int64_t)used;
	if (vp->turn.to_rotate > 0 || e->stays || e->share || kbi_task_is(e->task, KBI_TASK_BOUND))
		return;
	e->to = find_rotation_target(vp);
	if (e->to)
		vp->turn.to_rotate = (int64_t)(ROTATE * quantum_ns());
}

/* ---- the turn -------------------------------------------------------------------------------- */

/* Returns true if vp->turn describes the present turn. */
static bool is_turn_noted(const struct kbi_vp *vp)
{
	return a_load_rlx(&vp->turn.number) == kbi_vp_turns(vp);
}

/* Notes that self, which had been interrupted at `place`, goes on. */
static void note_turn_begin(struct kbi_vp *vp, struct kbi_task *self,
	const struct kbi_context_place *place, bool brief)
{
	struct kbi_turn *n = &vp->turn;

	n->place = *place;
	n->begun = *virtual_time(self);
	a_store_rlx(&n->since, kbi_sys_now());
	a_store_rlx(&n->cpu, kbi_turn_cpu(0));
	a_store_rlx(&n->brief, brief);
	a_store_rlx(&n->known, kbi_vp_backlog(vp));
	/* release: partner is the acquire in watch_new_turn of core/quantum */
	a_store_rel(&n->number, kbi_vp_turns(vp));
}

/* Binds a light thread to its VP, which also keeps its worker: the thread must come back to the TLS
 * block that it was interrupted with. Returns true if it was not bound before. */
static bool hold_light_task(struct kbi_task *self)
{
	if (self->tp)
		return false;
	self->vp->n_held++;
	if (kbi_task_is(self, KBI_TASK_BOUND))
		return false;
	kbi_thread_of(self)->bound = (uint16_t)self->vp->id;
	kbi_task_set(self, KBI_TASK_BOUND);
	return true;
}

static void release_light_task(struct kbi_task *self, bool bound)
{
	if (!self->tp)
		self->vp->n_held--;
	if (bound)
		kbi_task_clear(self, KBI_TASK_BOUND);
}

/* Queues the thread that was switched away: its context is saved. */
static void *queue_left_task(void *arg)
{
	struct end e = *(struct end *)arg;
	struct kbi_pq *q = &e.vp->s->pq;

	if (e.to) {
		e.vp->s->given++;
		kbi_vp_send(e.to, e.task);
	} else if (e.share) {
		kbi_vp_push(e.vp, e.task, false);
	} else {
		a_store_rlx(&e.task->state, e.vp->ready_here);
		put_task_behind(q, e.task, e.stays ? e.behind : q->tail);
	}
	return NULL;
}

/* Switches away. Returns false if no other thread is ready after all. */
static KBI_SWITCHER bool switch_away(struct kbi_task *self, struct end *e)
{
	struct kbi_task *next = kbi_vp_pop(e->vp);

	if (!next)
		return false;
	if (next == e->behind)
		e->behind = NULL;
	kbi_run_switch_to(e->vp, self, next, queue_left_task, e);
	return true;
}

/* Gives the kernel thread the mask of the interrupted code, for the thread that runs next. Back on
 * a kernel thread, perhaps another, the context to return to gets that kernel thread's mask. */
static KBI_SWITCHER void switch_with_mask(struct kbi_task *self, ucontext_t *uc, struct end *e)
{
	/* as in the tick's handler */
	uint64_t all = ~((uint64_t)1 << (SIGSEGV - 1) | (uint64_t)1 << (SIGBUS - 1) |
			 kbi_broadcast_faults()), mask;
	bool bound;

	kbi_task_set(self, KBI_TASK_PREEMPTED);
	bound = hold_light_task(self);
	memcpy(&mask, &uc->uc_sigmask, sizeof mask);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_BYTES);
	switch_away(self, e);
	self = kbi_self_raw();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, MASK_BYTES);
	memcpy(&uc->uc_sigmask, &mask, sizeof mask);
	kbi_sys(SYS_sigaltstack, NULL, &uc->uc_stack);
	release_light_task(self, bound);
	kbi_task_clear(self, KBI_TASK_PREEMPTED);
}

KBI_SWITCHER void kbi_turn_end(struct kbi_task *self, ucontext_t *uc, uint64_t used)
{
	struct kbi_vp *vp = self->vp;
	struct end e = { .task = self, .vp = vp };
	struct kbi_context_place place;
	bool noted = is_turn_noted(vp), brief;

	kbi_np_enter(self);
	kbi_context_place(uc, &place);
	if (place.pc == kbi_return_hook_place())
		place.sp = 0; /* that place is always the same, whatever the thread does */
	brief = noted && kbi_context_is_near(&place, &vp->turn.place);
	kbi_task_set(self, KBI_TASK_COMPUTES);
	*virtual_time(self) = (noted ? vp->turn.begun : a_load_rlx(&vp->turn.clock)) + used;
	kbi_run_look_if_due(vp); /* sysmon counts by turns */
	e.share = kbi_sched_idle_others(vp->s) > 0;
	arrange_ready_tasks(vp, &e);
	rotate_to_next_vp(vp, &e, used);
	vp->n_ended++;
	vp->n_brief += brief;
	if (!e.stays || e.behind)
		switch_with_mask(self, uc, &e);
	self = kbi_self_raw();
	note_turn_begin(self->vp, self, &place, brief);
	kbi_np_leave(self);
	if (kbi_preempt_returns)
		kbi_preempt_returns(self, uc);
}
