/* core/yield.c - gives ready threads their turn: the running thread goes to the end of its VP's
 * ready queue and switches to the next. Contract in yield.h. Runs on the caller's stack, inside np
 * brackets, no locks. */
#include "core/yield.h"

#include "core/run.h"
#include "core/wait.h"
#include "os/sys.h"

void *kbi_yield_requeue(void *arg)
{
	struct kbi_task *t = arg;

	kbi_vp_push(t->vp, t, false);
	return NULL;
}

/* Switches to any kind of next task. Inside np brackets, which it leaves. */
KBI_SWITCHES static inline __attribute__((always_inline)) void turn(struct kbi_vp *vp,
	struct kbi_task *self)
{
	struct kbi_task *next = kbi_vp_turn(vp, self);
	void *(*after)(void *) = NULL;

	if (kbi_unlikely(!next)) {
		next = kbi_vp_pop(vp);
		after = kbi_yield_requeue;
	}
	if (kbi_likely(next != NULL))
		kbi_run_switch_to(vp, self, next, after, self);
	kbi_np_leave(kbi_self_raw()); /* self is not kept over the switch */
}

/* Offers the processor. Inside np brackets, which it leaves. */
static KBI_NOINLINE void yield_without_vp(struct kbi_task *self)
{
	kbi_np_leave(self);
	kbi_sys_yield();
}

static KBI_SWITCHER void yield_own(struct kbi_task *self)
{
	kbi_np_enter(self);
	if (kbi_unlikely(!self->vp)) {
		yield_without_vp(self);
		return;
	}
	kbi_run_look_if_due(self->vp);
	turn(self->vp, self);
}

/* Takes a turn after a look, in np brackets. */
static KBI_SWITCHER void yield_looked(struct kbi_vp *vp, struct kbi_task *self)
{
	turn(vp, self);
}

static KBI_NOINLINE void yield_looking(struct kbi_vp *vp, struct kbi_task *self)
{
	kbi_run_look(vp);
	yield_looked(vp, self);
}

/* Switches from a light thread to a light thread in line. All other functions are tail calls: so
 * this function needs no frame. */
KBI_SWITCHER void kbi_yield_now(void)
{
	struct kbi_task *self = kbi_self_raw(), *next;
	struct kbi_vp *vp;

	if (kbi_unlikely(!self)) {
		kbi_sys_yield();
		return;
	}
	if (kbi_unlikely(kbi_task_is(self, KBI_TASK_NOT_BARE | KBI_TASK_BOUND))) {
		yield_own(self);
		return;
	}
	kbi_np_enter(self);
	vp = self->vp;
	if (kbi_unlikely(!vp)) {
		yield_without_vp(self);
		return;
	}
	if (kbi_unlikely(kbi_run_is_look_due(vp))) {
		yield_looking(vp, self);
		return;
	}
	next = kbi_vp_turn_bare(vp, self);
	if (kbi_unlikely(!next)) {
		yield_looked(vp, self);
		return;
	}
	kbi_np_leave(kbi_run_switch_bare(vp, self, next, NULL, NULL));
}
