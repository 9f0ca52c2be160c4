/* core/domain.c - the keeper's work. Contract in domain.h. Runs inside np brackets on any stack;
 * no locks; never switches.
 *
 * Why no wake-up is lost. The VP in a task's state word owns the task. A wake on the owner VP,
 * for a task WAITING there, claims it: no other VP can. Any other wake is a message to the owner
 * VP. The owner reads its messages only between tasks, that is, when none of its own tasks is
 * half-way into its sleep. If the task is awake there, the owner leaves a permit (`permit`),
 * which the task finds when it next sleeps on that VP, in program order. If the task has left,
 * the owner passes the message on. Law 3 of sched/task.h catches a task that another VP takes at
 * that very moment: permit, fence, look at the state again, against new state, fence, (later) look
 * at the permit. Models: model/wait.pml, model/board.pml. */
#include "core/domain.h"

#include "core/foreign.h"
#include "core/cell.h"
#include "core/deadline.h"
#include "os/sys.h"

/* ---- watched words --------------------------------------------------------------------------- */

bool kbi_domain_watch_changed(const struct kbi_watch *w)
{
	/* acquire: pairs with the release, if any, of a writer unknown to us */
	if (w->size == 4)
		return __atomic_load_n((const volatile uint32_t *)w->word, __ATOMIC_ACQUIRE) !=
		       (uint32_t)w->old;
	return __atomic_load_n((const volatile uint64_t *)w->word, __ATOMIC_ACQUIRE) != w->old;
}

void (*kbi_domain_boards)(struct kbi_vp *me, struct kbi_vp *dom);

static void count_watch(struct kbi_vp *dom, const struct kbi_watch *w, uint32_t n)
{
	a_store_rlx(&dom->n_watches, a_load_rlx(&dom->n_watches) + n);
	if (w->rung)
		a_store_rlx(&dom->n_rung, a_load_rlx(&dom->n_rung) + n);
	if (w->boarded)
		dom->n_boarded += n;
	if (w->counter)
		a_store_rlx(w->counter, a_load_rlx(w->counter) + n);
}

void kbi_domain_watch_add(struct kbi_vp *vp, struct kbi_watch *w, struct kbi_watch **list)
{
	w->link = list ? list : &vp->watches;
	w->next = *w->link;
	if (w->next)
		w->next->link = &w->next;
	*w->link = w;
	count_watch(vp, w, 1);
	kbi_thread_of(w->task)->watch = w;
	kbi_task_set(w->task, KBI_TASK_WATCHES);
}

static void watch_drop(struct kbi_vp *dom, struct kb_thread *t)
{
	struct kbi_watch *w = t->watch;

	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	count_watch(dom, w, UINT32_MAX);
	kbi_task_clear(&t->task, KBI_TASK_WATCHES);
}

/* Queues a waiter that was claimed in dom: on dom if it is bound, else on me. */
static void queue_claimed_task(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_task *t,
	bool front)
{
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_BOUND) && me != dom))
		kbi_vp_send(dom, t);
	else
		kbi_vp_push(me, t, front);
}

static void watch_poll(struct kbi_vp *me, struct kbi_vp *dom)
{
	struct kbi_watch *w = dom->watches, *next;

	for (; w; w = next) {
		next = w->next;
		/* acquire: pairs with the release in kbi_wait_sleep_on */
		if (!kbi_domain_watch_changed(w) || a_load_acq(&w->task->state) != dom->waiting_here)
			continue;
		kbi_domain_claim(dom, w->task, KBI_WAKE_WATCH);
		queue_claimed_task(me, dom, w->task, false);
	}
	if (dom->n_boarded)
		kbi_domain_boards(me, dom);
}

/* ---- claiming -------------------------------------------------------------------------------- */

void kbi_domain_disarm(struct kbi_vp *dom, struct kb_thread *t)
{
	if (kbi_task_is(&t->task, KBI_TASK_TIMED))
		kbi_deadline_disarm(dom, t);
	if (kbi_task_is(&t->task, KBI_TASK_WATCHES))
		watch_drop(dom, t);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

static void expire_deadlines(struct kbi_vp *me, struct kbi_vp *dom, uint64_t now)
{
	struct kb_thread *t;

	while ((t = kbi_deadline_due(dom, now))) {
		/* t set its deadline and has not gone to sleep yet: it is this VP's running thread */
		if (a_load_acq(&t->task.state) != dom->waiting_here) {
			t->reason = KBI_WAKE_DEADLINE;
			kbi_domain_wake_far(me, &t->task, false);
			continue;
		}
		kbi_domain_claim(dom, &t->task, KBI_WAKE_DEADLINE);
		queue_claimed_task(me, dom, &t->task, false);
	}
}

/* ---- wake-ups -------------------------------------------------------------------------------- */

/* Leaves a permit: t is awake on this VP, or on its way to some VP. Returns false if the state
 * has changed meanwhile. */
static bool leave_permit(struct kbi_task *t, uint64_t st)
{
	/* release: pairs with the acquires in kbi_wait_has_permit and kbi_domain_claim */
	a_store_rel(&t->permit, 1);
	/* pairs with law 3: the fence of the VP that takes the task from a shared place */
	a_fence_sc();
	return a_load_acq(&t->state) == st;
}

/* Takes the waiter over instead of waking its home VP, if that VP sleeps and offers its domain.
 * Returns true if t is now READY here. */
static bool pull_waiter(struct kbi_vp *me, struct kbi_vp *home, struct kbi_task *t, bool front)
{
	bool mine;

	if (kbi_task_is(t, KBI_TASK_BOUND) || !kbi_vp_hold(home))
		return false;
	/* acquire: pairs with the release in kbi_wait_sleep_on */
	mine = a_load_acq(&t->state) == home->waiting_here;
	if (mine) {
		kbi_domain_claim(home, t, KBI_WAKE_PERMIT);
		/* the store precedes the return of the domain: its next holder, or home itself, must not
		 * claim t once more */
		a_store_rlx(&t->state, me->ready_here);
	}
	kbi_vp_unhold(home);
	if (mine)
		kbi_vp_push(me, t, front);
	return mine;
}

void kbi_domain_post(struct kbi_vp *me, struct kbi_vp *home, struct kbi_task *t, void *what,
	unsigned kind, uint64_t value)
{
	if (kbi_unlikely(!kbi_mail_post(&home->board, me->id, t, what, kind, value))) {
		if (kind & KBI_MAIL_CELL)
			kbi_cell_put(what, value);
		kbi_board_mark(&home->board, t->index);
	}
	/* fence: pairs with the sleeper's in agent.c, which publishes doze, fences and looks at its
	 * mail */
	a_fence_sc();
	kbi_vp_rouse(home);
}

/* Wakes a BLOCKED task, which keeps its kernel thread and sleeps there as a foreign thread does.
 * Returns false if its state has changed meanwhile. */
static bool wake_blocked(struct kbi_task *t, uint64_t st)
{
	kbi_foreign_wake(t); /* contains a full fence. Pairs with take_permit in handoff.c */
	a_fence_after_rmw();
	return a_load_acq(&t->state) == st;
}

KBI_NOINLINE void kbi_domain_wake_far(struct kbi_vp *me, struct kbi_task *t, bool front)
{
	for (;;) {
		/* acquire: partner is the owner's release */
		uint64_t st = a_load_acq(&t->state);
		struct kbi_vp *home;

		switch (kbi_state_kind(st)) {
		case KBI_TASK_FREE:
		case KBI_TASK_NEW:
		case KBI_TASK_DONE:
			return;
		case KBI_TASK_FOREIGN:
			kbi_foreign_wake(t);
			return;
		case KBI_TASK_BLOCKED:
			if (wake_blocked(t, st))
				return;
			continue;
		default:
			break;
		}
		home = kbi_vps[kbi_state_vp(st)];
		if (st == me->waiting_here) {
			kbi_domain_claim(me, t, KBI_WAKE_PERMIT);
			kbi_vp_push(me, t, front);
			return;
		}
		if (home == me || kbi_state_kind(st) == KBI_TASK_WAIVED) {
			if (leave_permit(t, st))
				return;
			continue;
		}
		if (st != home->waiting_here || !pull_waiter(me, home, t, front))
			kbi_domain_post(me, home, t, t, front ? KBI_MAIL_NEXT : 0, 0);
		return;
	}
}

void kbi_domain_wake_apart(struct kbi_vp *me, struct kbi_task *t, struct kbi_vp *other)
{
	/* acquire: partner is the owner's release */
	uint64_t st = a_load_acq(&t->state);
	struct kbi_vp *home = kbi_state_kind(st) == KBI_TASK_WAITING ? kbi_vps[kbi_state_vp(st)] : me;

	if (st == me->waiting_here && !kbi_task_is(t, KBI_TASK_BOUND)) {
		kbi_domain_claim(me, t, KBI_WAKE_PERMIT);
		kbi_vp_send(other, t);
	} else if (home != me && st == home->waiting_here) {
		kbi_domain_post(me, home, t, t, 0, 0);
	} else {
		kbi_domain_wake(me, t, false);
	}
}

/* The order from a kernel thread that is no VP: the permit first, then the board of t's home. */
void kbi_domain_wake_from_outside(struct kbi_task *t)
{
	uint64_t st;

	/* acquire: pairs with the release in kbi_foreign_enter */
	if (kbi_state_kind(a_load_acq(&t->state)) == KBI_TASK_FOREIGN) {
		kbi_foreign_wake(t);
		return;
	}
	/* release: pairs as in leave_permit */
	a_store_rel(&t->permit, 1);
	/* orders the permit before the read of t's home: a VP that becomes t's home looks at the
	 * permit afterwards (law 3) */
	a_fence_sc();
	st = a_load_acq(&t->state);
	switch (kbi_state_kind(st)) {
	case KBI_TASK_FREE:
	case KBI_TASK_NEW:
	case KBI_TASK_DONE:
		return;
	case KBI_TASK_BLOCKED:
		/* if t has gone on, it finds the permit, which was set before */
		kbi_foreign_wake(t);
		return;
	default:
		kbi_board_mark(&kbi_vps[kbi_state_vp(st)]->board, t->index);
		a_fence_sc(); /* pairs with the sleeper's fence in agent.c */
		kbi_vp_rouse(kbi_vps[kbi_state_vp(st)]);
	}
}

/* ---- boards of watches ----------------------------------------------------------------------- */

void kbi_domain_watch_fire(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_watch *w)
{
	struct kbi_task *t = w->task;

	/* acquire: partner is the release in kbi_wait_sleep */
	if (a_load_acq(&t->state) != dom->waiting_here) {
		/* t is this VP's running thread, which looks round before it sleeps: it is not told
		 * again */
		kbi_domain_wake_far(me, t, false);
		return;
	}
	kbi_domain_claim(dom, t, KBI_WAKE_WATCH);
	queue_claimed_task(me, dom, t, false);
}

/* ---- looking at every source ----------------------------------------------------------------- */

/* Readies a task that mail from VP `from` woke. If the VP was idle, it counts short runs: after
 * four in a row the task moves to the VP that it converses with, so that a conversation ends up
 * on one VP. */
static void resume_by_mail(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_task *t, unsigned from,
	bool front)
{
	kbi_domain_claim(dom, t, KBI_WAKE_PERMIT);
	if (me->cur || kbi_task_is(t, KBI_TASK_BOUND)) {
		queue_claimed_task(me, dom, t, front);
		return;
	}
	if (kbi_thread_of(t)->pingpong >= 4 && !a_load_rlx(&kbi_vps[from]->doze)) {
		kbi_thread_of(t)->pingpong = 0;
		kbi_vp_send(kbi_vps[from], t);
		return;
	}
	me->idle_ran = kbi_thread_of(t);
	me->idle_ran_at = kbi_sys_now();
	kbi_vp_push(me, t, front);
}

/* Puts a cell's message into its owner's descriptor if the owner waits or runs here. It does not
 * touch the cell, which its owner may have given up by now. Returns false if the message was not
 * put. */
static bool put_cell_value(struct kbi_vp *me, struct kbi_vp *dom, struct kbi_task *t, uint64_t st,
	void *cell, uint64_t value)
{
	return (st == dom->waiting_here || (me == dom && st == dom->running_here)) &&
		kbi_cell_give(cell, t, value);
}

static void mail_one(struct kbi_vp *me, struct kbi_vp *dom, unsigned from)
{
	unsigned kind;
	uint64_t value, st;
	void *what;
	struct kbi_task *t = kbi_mail_take(&dom->board, from, &what, &kind, &value);

	me->n_mail++;
	/* acquire: pairs with the release store of WAITING in kbi_wait_sleep_on; the context is
	 * saved */
	st = a_load_acq(&t->state);
	if ((kind & KBI_MAIL_CELL) && !put_cell_value(me, dom, t, st, what, value))
		kbi_cell_put(what, value);
	if (st == dom->waiting_here)
		resume_by_mail(me, dom, t, from, kind & KBI_MAIL_NEXT);
	else
		kbi_domain_wake_far(me, t, kind & KBI_MAIL_NEXT);
}

static bool take_mail(struct kbi_vp *me, struct kbi_vp *dom)
{
	bool any = false;

	if (!dom->board.in)
		return false;
	for (unsigned from = 0; from < kbi_vp_n; from++)
		while (kbi_mail_waiting(&dom->board, from)) {
			mail_one(me, dom, from);
			any = true;
		}
	return any;
}

struct scan {
	struct kbi_vp *me, *dom;
};

static void on_marked_task(void *arg, uint32_t index)
{
	const struct scan *s = arg;
	struct kbi_task *t = &kbi_descriptor_at(index)->task;

	/* acquire: partner is the release in kbi_wait_sleep */
	if (a_load_acq(&t->state) != s->dom->waiting_here) {
		kbi_domain_wake_far(s->me, t, kbi_descriptor_is_signalled(kbi_thread_of(t)));
		return;
	}
	kbi_domain_claim(s->dom, t, KBI_WAKE_PERMIT);
	queue_claimed_task(s->me, s->dom, t, kbi_descriptor_is_signalled(kbi_thread_of(t)));
}

static void scan_board(struct kbi_vp *me, struct kbi_vp *dom)
{
	struct scan s = { me, dom };

	kbi_board_scan(&dom->board, on_marked_task, &s);
	if (me == dom)
		kbi_vp_receive(me);
	else if (a_load_rlx(&dom->inbox))
		/* only dom takes from its inbox, and it looks there only when `marked` is set. release:
		 * pairs with the acquire in kbi_board_scan */
		a_store_rel(&dom->board.marked, 1);
}

void kbi_domain_poll(struct kbi_vp *me, struct kbi_vp *dom, uint64_t now)
{
	take_mail(me, dom);
	if (a_load_rlx(&dom->board.marked))
		scan_board(me, dom);
	if (dom->n_timed)
		expire_deadlines(me, dom, now ? now : kbi_sys_now());
	if (a_load_rlx(&dom->n_watches))
		watch_poll(me, dom);
}

