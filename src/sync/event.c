/* sync/event.c - the notification area: a cell on which its owner waits (core/wait.h). On the
 * owner's own VP, notify and wait cost only plain loads and stores.
 * Callers: all rooms above. Calls wait, timer, thread. Waiting may switch, notifying never does. */
#include "sync/event.h"

#include <errno.h>

#include "core/thread.h"
#include "sync/waitq.h"

void kbi_event_take_far(struct kbi_cell *c, struct kbi_task *self, uint64_t *value)
{
	kbi_np_enter(self);
	kbi_spin_lock_bit(&c->far, KBI_CELL_LOCK);
	if (a_load_rlx(&c->far) & KBI_CELL_FULL)
		*value = a_load_rlx(&c->far_value);
	/* release: pairs with the acquire of kbi_cell_put's lock */
	a_store_rel(&c->far, 0);
	kbi_np_leave(self);
}

static inline int take_event_value(kb_event_t *ev, struct kbi_task *self, uint64_t *value)
{
	uint64_t v = kbi_event_take(ev, self);

	if (value)
		*value = v;
	return 0;
}

static inline bool is_owner(const kb_event_t *ev, const struct kbi_task *self)
{
	return kbi_likely(ev->owner == self);
}

int kb_event_init(kb_event_t *ev, kb_thread_t owner)
{
	struct kbi_task *t = owner ? &owner->task : kbi_waitq_self();

	/* a message for an earlier event at this address, which was never taken */
	if (t == kbi_self_raw() && kbi_task_is(t, KBI_TASK_MAIL) &&
			kbi_thread_of(t)->got == kbi_event_cell(ev))
		kbi_task_clear(t, KBI_TASK_MAIL);
	*ev = (kb_event_t){ .owner = t };
	a_store_rlx(&kbi_event_cell(ev)->rests, NULL);
	kbi_event_cell(ev)->home = kbi_task_is(t, KBI_TASK_BOUND) ? kbi_thread_of(t)->bound + 1 : 0;
	return 0;
}

static KBI_NOINLINE void notify_from_outside(struct kbi_cell *c, uint64_t value,
	struct kbi_task *self)
{
	kbi_np_leave(self);
	kbi_wait_deliver_from_outside(c, value);
}

/* Notifies. bound: the owner is bound to a VP. */
static inline __attribute__((always_inline)) void notify_cell(struct kbi_cell *c, uint64_t value,
	bool bound)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_vp *vp;

	if (kbi_unlikely(!self)) {
		kbi_wait_deliver_from_outside(c, value);
		return;
	}
	kbi_np_enter(self);
	vp = self->vp;
	if (kbi_unlikely(!vp))
		notify_from_outside(c, value, self);
	else if ((!bound || c->home == vp->id + 1) && kbi_likely(kbi_wait_deliver_here(vp, c, value)))
		kbi_np_leave(self);
	else
		kbi_wait_deliver_slow(c, value, self);
}

/* Notifies an owner that is bound to a VP. From another VP the caller neither reads nor prefetches
 * the owner's descriptor or stack: the owner's VP would have to fetch those cache lines back before
 * it could write to them, and its next store, its answer, would wait for that. */
static KBI_NOINLINE void notify_bound(struct kbi_cell *c, uint64_t value)
{
	notify_cell(c, value, true);
}

void kb_event_notify(kb_event_t *ev, uint64_t value)
{
	struct kbi_cell *c = kbi_event_cell(ev);

	if (kbi_unlikely(c->home)) {
		notify_bound(c, value);
		return;
	}
	kbi_cell_fetch(c);
	notify_cell(c, value, false);
}

/* Waits; also after a wait for the cell that a wake-up without its message has ended. */
static KBI_NOINLINE int wait_slow(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!is_owner(ev, self))
		return EPERM;
	self->awaits = NULL;
	for (;;) {
		kbi_wait_handle(self);
		if (kbi_event_pending(ev, self))
			break;
		kbi_wait_sleep(self);
	}
	return take_event_value(ev, self, value);
}

/* Goes on after self's sleep: the message was handed over, or self was woken for a different
 * reason. Inside np brackets, which this function leaves. */
static inline int finish_event_wait(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	kbi_np_leave(self);
	if (kbi_unlikely(self->awaits != NULL))
		return wait_slow((kb_event_t *)c, value);
	/* no acquire is needed: the value comes with the wake-up */
	if (kbi_likely(value != NULL))
		*value = a_load_rlx(&c->value);
	return 0;
}

/* Waits the slow way. Inside np brackets, which this function leaves. */
static KBI_NOINLINE int leave_and_wait(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	kbi_np_leave(self);
	return wait_slow((kb_event_t *)c, value);
}

/* Waits where self has its own TLS, or a message or permit must be checked first. Inside np
 * brackets, which this function leaves. */
static KBI_SWITCHER int wait_other(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	if (kbi_unlikely(!self->vp || kbi_task_is(self, KBI_TASK_MAIL) || !a_zero32_rlx(&c->far)))
		return leave_and_wait(c, value, self);
	self->awaits = c;
	kbi_cell_rest(c, __builtin_frame_address(0));
	if (kbi_unlikely(!kbi_wait_sleep_on(self->vp, self)))
		return leave_and_wait(c, value, self);
	return finish_event_wait(c, value, self);
}

/* Waits after a due look at the sources. Inside np brackets, which this function leaves. */
static KBI_NOINLINE int wait_looking(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	kbi_run_look(self->vp);
	return wait_other(c, value, self);
}

/* Switches away. self is WAITING already; next has its own TLS, or is new, or is NULL. Inside np
 * brackets, which this function leaves. */
static KBI_SWITCHER int
wait_switching(struct kbi_cell *c, uint64_t *value, struct kbi_task *self, struct kbi_task *next)
{
	kbi_run_switch_to(self->vp, self, next, NULL, NULL);
	return finish_event_wait(c, value, self);
}

static inline void register_event_wait(struct kbi_cell *c, struct kbi_task *self, struct kbi_vp *vp)
{
	self->awaits = c;
	kbi_cell_rest(c, __builtin_frame_address(0));
	/* release: pairs with the acquire in kbi_domain_wake, as in kbi_wait_sleep_on */
	a_store_rel(&self->state, vp->waiting_here);
}

KBI_SWITCHES static inline __attribute__((always_inline)) int
switch_and_finish_wait(struct kbi_cell *c, uint64_t *value, struct kbi_task *self,
	struct kbi_vp *vp, struct kbi_task *next)
{
	void *cell = c, *place = value;

	self = kbi_run_switch_keeping(vp, self, next, &cell, &place);
	return finish_event_wait(cell, place, self);
}

/* Waits where the next thread is not the simple case. self is a light thread inside np brackets and
 * has looked at the sources. */
static KBI_SWITCHER int wait_next(struct kbi_cell *c, uint64_t *value, struct kbi_task *self,
	struct kbi_vp *vp)
{
	struct kbi_task *next;

	register_event_wait(c, self, vp);
	next = kbi_vp_pop(vp);
	if (kbi_unlikely(!next || kbi_task_is(next, KBI_TASK_NOT_BARE)))
		return wait_switching(c, value, self, next);
	return switch_and_finish_wait(c, value, self, vp, next);
}

/* Waits. The common case is in line: a light thread sleeps, another light thread goes on, and self
 * is handed a message. All further functions are called last, if at all: so this function needs no
 * frame before it switches. */
KBI_SWITCHER int kb_event_wait(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_self_raw(), *next;
	struct kbi_cell *c = kbi_event_cell(ev);
	struct kbi_vp *vp;

	/* an event has an owner: self is not NULL after this test */
	if (kbi_unlikely(c->owner != self))
		return wait_slow(ev, value);
	/* np brackets before the checks: a tick between a check and the bracket could read mail and
	 * leave a permit and a message, or give self away to a VP where a waker leaves them, and self
	 * would go to sleep with both. */
	kbi_np_enter(self);
	if (kbi_unlikely(kbi_task_is_hindered(self, KBI_TASK_NOT_BARE | KBI_TASK_MAIL)) ||
	    kbi_unlikely(!a_zero32_rlx(&c->far)))
		return wait_other(c, value, self);
	vp = self->vp;
	/* the look may find a permit or a message: wait_other checks for both again */
	if (kbi_unlikely(kbi_run_is_look_due(vp)))
		return wait_looking(c, value, self);
	next = vp->first;
	if (kbi_unlikely(!next || kbi_task_is(next, KBI_TASK_NOT_BARE)))
		return wait_next(c, value, self, vp);
	vp->first = NULL;
	register_event_wait(c, self, vp);
	return switch_and_finish_wait(c, value, self, vp, next);
}

int kb_event_timedwait(kb_event_t *ev, uint64_t *value, uint64_t deadline)
{
	struct kbi_task *self = kbi_waitq_self();
	int rc = 0;

	if (!is_owner(ev, self))
		return EPERM;
	while (!kbi_event_pending(ev, self)) {
		if (rc)
			return rc;
		rc = kbi_waitq_sleep(self, kbi_waitq_until_handling(deadline));
	}
	return take_event_value(ev, self, value);
}

int kb_event_try(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!is_owner(ev, self))
		return EPERM;
	return kbi_event_pending(ev, self) ? take_event_value(ev, self, value) : EAGAIN;
}
