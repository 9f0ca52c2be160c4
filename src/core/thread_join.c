/* core/thread_join.c - join and detach. Contract in thread.h and kochab.h; the meaning of a
 * thread's `join`: thread.c. Runs on the caller's stack; a joiner whose thread has not begun runs
 * it at once. No locks. */
#include <errno.h>

#include "core/domain.h"
#include "core/handoff.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "core/thread.h"
#include "core/thread_priv.h"
#include "core/timer.h"
#include "core/wait.h"

/* Returns true if t has ended by itself. acquire: partner is the exchange in complete_thread_end,
 * or the release in claim_joiner */
static inline bool has_thread_ended(struct kb_thread *t)
{
	return (uintptr_t)a_load_acq(&t->join) & 1;
}

/* Returns true if t has ended or crashed. acquire: partner is the exchange in thread_loss.c */
static inline bool is_thread_over(struct kb_thread *t)
{
	return has_thread_ended(t) || a_load_acq(&t->join) == KBI_JOIN_LOST;
}

static KBI_NOINLINE int wait_for_thread_end(struct kbi_task *self, struct kb_thread *t,
	uint64_t deadline, kbi_stop *stop)
{
	while (!is_thread_over(t)) {
		int e = stop ? stop(self) : 0;
		void *mine = self;

		if (!e)
			e = kbi_timer_sleep(self, deadline);
		/* acquire: of the exchange in complete_thread_end, if t has ended meanwhile */
		if (e && a_cas_acqrel(&t->join, &mine, NULL))
			return e;
	}
	return 0;
}

/* Takes t, whose joiner is the caller, if it has never run and waits in this VP's queue; gives it
 * its stack. Returns false if that is not so. */
static inline bool take_new_thread(struct kbi_vp *vp, struct kb_thread *t)
{
	/* acquire: no data is read; our own VP wrote the state if it matches. t may be stolen until it
	 * is taken */
	if (a_load_acq(&t->task.state) != vp->ready_here ||
	    !kbi_task_is(&t->task, KBI_TASK_NOT_STARTED))
		return false;
	if (kbi_unlikely(!kbi_vp_take(vp, &t->task)))
		return false;
	if (kbi_likely(kbi_run_equip(vp, t)))
		return true;
	kbi_vp_push(vp, &t->task, false); /* kbi_run_start will look for a stack everywhere */
	return false;
}

/* Runs t now on this VP, if it has never run, while self waits for its end. */
KBI_SWITCHES static inline void run_now(struct kbi_vp *vp, struct kbi_task *self,
	struct kb_thread *t)
{
	if (!take_new_thread(vp, t))
		return;
	/* release: partner is the acquire in claim_joiner, or of a waker */
	a_store_rel(&self->state, vp->waiting_here);
	/* a wake-up of self meanwhile may end its wait: t has to wait for its turn again */
	if (kbi_unlikely(kbi_wait_has_permit(vp, self)))
		kbi_vp_push(vp, &t->task, true);
	else
		kbi_run_switch_to_new(vp, self, &t->task);
}

/* Has libc end t's control block in memory of the program's, on a kernel thread, which may wait for
 * locks of threads that are ready here: the caller leaves its VP to them. np is 1, and 0
 * meanwhile. */
static KBI_SWITCHER void end_adopted_block(struct kbi_task *self, struct kb_thread *t)
{
	kbi_np_leave(self);
	kbi_handoff_begin(KBI_HANDOFF_SURELY);
	kbi_stack_end_adopted(t->stack);
	kbi_handoff_end();
	kbi_np_enter(self);
}

static inline bool is_adopted(const struct kb_thread *t)
{
	return t->user_stack && t->own_tls && t->stack;
}

/* Gives back t's resources; the joiner or detacher calls it when no other thread knows t. */
static inline void free_joined_thread(struct kbi_vp *vp, struct kb_thread *t)
{
	if (a_load_rlx(&t->join) == KBI_JOIN_GIVEN)
		kbi_thread_put_stack(vp, t);
	kbi_thread_dispose(vp, t);
}

/* Makes self t's joiner. Returns false with the present mark in *found, which was NULL. Alone, no
 * thread can come between. */
static inline bool set_joiner(struct kbi_task *self, struct kb_thread *t, void **found)
{
	if (kbi_single_threaded_enter(self)) {
		*found = a_load_rlx(&t->join);
		if (!*found)
			a_store_rlx(&t->join, self);
		kbi_single_threaded_leave();
		return !*found;
	}
	/* release: partner is the exchange in complete_thread_end, which wakes us;
	 * acquire: of its release */
	return a_cas_acqrel(&t->join, found, self);
}

/* Makes self t's joiner, unless it is already (*mine) or t has ended. */
static int become_joiner(struct kbi_task *self, struct kb_thread *t, uint64_t deadline, bool *mine)
{
	/* acquire: partner is the exchange in complete_thread_end */
	void *found = a_load_acq(&t->join);

	if (*mine || found == KBI_JOIN_ENDED || found == KBI_JOIN_LOST)
		return 0;
	if (found == KBI_JOIN_DETACHED || deadline == 0)
		return found == KBI_JOIN_DETACHED ? EINVAL : EBUSY;
	found = NULL;
	*mine = set_joiner(self, t, &found);
	return *mine || found == KBI_JOIN_ENDED || found == KBI_JOIN_LOST ? 0 : EINVAL;
}

/* Does all but the common case of a join. mine: t's joiner is self already. */
static KBI_NOINLINE int join_slow(struct kbi_task *self, struct kb_thread *t, uint64_t deadline,
	bool mine, kbi_stop *stop)
{
	int e = become_joiner(self, t, deadline, &mine);

	if (!e && mine)
		e = wait_for_thread_end(self, t, deadline, stop);
	return e || has_thread_ended(t) ? e : kbi_thread_bury(t);
}

/* Does the common case: self, on a VP, is the first to join and has no deadline. Returns false if
 * that is not so, or self has to wait. */
static inline bool join_now(struct kbi_task *self, struct kb_thread *t, uint64_t deadline,
	bool *mine)
{
	void *none = NULL;

	if (kbi_unlikely(!self->vp || deadline != KBI_FOREVER))
		return false;
	*mine = set_joiner(self, t, &none);
	if (kbi_unlikely(!*mine))
		return none == KBI_JOIN_ENDED;
	run_now(self->vp, self, t);
	return has_thread_ended(t);
}

/* Finishes a join. Inside np brackets, which it leaves. */
static inline int finish_join(struct kbi_task *self, struct kb_thread *t, void **result)
{
	if (kbi_likely(result != NULL))
		*result = t->result;
	if (kbi_unlikely(is_adopted(t)))
		end_adopted_block(self, t);
	free_joined_thread(self->vp, t);
	kbi_np_leave(self);
	return 0;
}

/* Joins in any case. Inside np brackets, which it leaves, as the next function. mine: t's joiner is
 * self already, and has to wait. */
static KBI_SWITCHER KBI_FLATTEN int join_other(
	struct kbi_task *self, struct kb_thread *t, void **result, uint64_t deadline, kbi_stop *stop,
	bool mine)
{
	int e = 0;

	/* acquire: partner is the exchange in complete_thread_end */
	if (mine || (a_load_acq(&t->join) != KBI_JOIN_ENDED &&
		     kbi_unlikely(!join_now(self, t, deadline, &mine))))
		e = join_slow(self, t, deadline, mine, stop);
	if (kbi_likely(!e))
		return finish_join(self, t, result);
	kbi_np_leave(self);
	return e;
}

/* Runs t, which take_new_thread has taken; self and t are light. A function of its own, so that
 * the code before it need not keep everything in memory for the code after it. */
static KBI_SWITCHER KBI_FLATTEN int
join_bare(struct kb_thread *t, void **result, struct kbi_task *self, struct kbi_vp *vp)
{
	/* release: partner is the acquire in claim_joiner, or of a waker */
	a_store_rel(&self->state, vp->waiting_here);
	self = kbi_run_switch_to_new_bare(vp, self, &t->task);
	KBI_LOAD_ONCE(t);
	if (kbi_unlikely(!has_thread_ended(t)))
		return join_other(self, t, result, KBI_FOREVER, NULL, true);
	return finish_join(self, t, result);
}

/* Returns true if join_bare may run t. */
static inline bool is_bare_join(const struct kbi_task *self, const struct kb_thread *t,
	uint64_t deadline, kbi_stop *stop)
{
	return self->vp && deadline == KBI_FOREVER && !stop && !t->own_tls &&
	       !kbi_task_is(self, KBI_TASK_NOT_BARE) &&
	       kbi_task_is(&t->task, KBI_TASK_NOT_STARTED);
}

KBI_SWITCHER KBI_FLATTEN int kbi_thread_join(struct kb_thread *t, void **result, uint64_t deadline,
	kbi_stop *stop)
{
	struct kbi_task *self = kbi_self_raw();
	bool mine = false;

	if (kbi_unlikely(!self))
		self = kbi_self();
	if (kbi_unlikely(!kbi_descriptor_valid(t)))
		return ESRCH;
	if (kbi_unlikely(&t->task == self))
		return EDEADLK;
	kbi_np_enter(self);
	if (kbi_likely(is_bare_join(self, t, deadline, stop))) {
		struct kbi_vp *vp = self->vp;
		void *none = NULL;

		mine = set_joiner(self, t, &none);
		if (kbi_likely(mine && take_new_thread(vp, t)))
			return join_bare(t, result, self, vp);
	}
	return join_other(self, t, result, deadline, stop, mine);
}

int kbi_thread_join_left(struct kb_thread *t, void **result)
{
	if (!kbi_descriptor_valid(t))
		return ESRCH;
	if (kbi_thread_is_detached(t))
		return EINVAL;
	if (result)
		*result = has_thread_ended(t) ? t->result : NULL;
	t->stack = NULL;
	/* partner: the acquire in kbi_descriptor_valid */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_FREE, 0));
	return 0;
}

int kbi_thread_detach(struct kb_thread *t)
{
	struct kbi_task *self = kbi_self();
	void *old = NULL;

	if (!kbi_descriptor_valid(t))
		return ESRCH;
	/* release: partner is the exchange in complete_thread_end; acquire: of its release */
	if (a_cas_acqrel(&t->join, &old, KBI_JOIN_DETACHED))
		return 0;
	if (old == KBI_JOIN_LOST)
		kbi_thread_bury(t);
	if (old != KBI_JOIN_ENDED)
		return old == KBI_JOIN_LOST ? 0 : EINVAL;
	kbi_np_enter(self);
	if (kbi_unlikely(is_adopted(t)))
		end_adopted_block(self, t);
	kbi_thread_dispose(self->vp, t);
	kbi_np_leave(self);
	return 0;
}

bool kbi_thread_is_detached(const struct kb_thread *t)
{
	return a_load_rlx(&t->join) == KBI_JOIN_DETACHED;
}
