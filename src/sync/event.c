/* sync/event.c - the notification area: a cell that its owner waits on (core/wait.h). Notify on the
 * owner's own VP and wait cost plain loads and stores only.
 * Callers: everybody above. Calls wait, timer, thread. Waiting may switch, notifying never. */
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
	/* release: partner is the acquire in kbi_cell_put's lock */
	a_store_rel(&c->far, 0);
	kbi_np_leave(self);
}

static inline int give(kb_event_t *ev, struct kbi_task *self, uint64_t *value)
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

	/* a message for an event that was at this address before, and was never taken */
	if (t == kbi_self_raw() && kbi_task_is(t, KBI_TASK_MAIL) && kbi_thread_of(t)->got == kbi_event_cell(ev))
		kbi_task_clear(t, KBI_TASK_MAIL);
	*ev = (kb_event_t){ .owner = t };
	kbi_event_cell(ev)->home = kbi_task_is(t, KBI_TASK_BOUND) ? kbi_thread_of(t)->bound + 1 : 0;
	return 0;
}

void kb_event_notify(kb_event_t *ev, uint64_t value)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_cell *c = kbi_event_cell(ev);

	if (kbi_unlikely(!self || !self->vp)) {
		kbi_wait_deliver_from_outside(c, value);
		return;
	}
	kbi_np_enter(self);
	if (kbi_likely(kbi_wait_deliver_here(self->vp, c, value)))
		kbi_np_leave(self);
	else
		kbi_wait_deliver_slow(self, c, value);
}

/* Also for who has waited for the cell and was woken without a message for it. */
static KBI_NOINLINE int wait_slow(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!is_owner(ev, self))
		return EPERM;
	self->awaits = NULL;
	while (!kbi_event_pending(ev, self))
		kbi_wait_sleep(self);
	return give(ev, self, value);
}

/* What a waiter needs when it goes on. The switch loses all registers, so it is kept in memory. */
struct kept {
	struct kbi_cell *c;
	uint64_t *value;
	struct kbi_task *self;
};

/* self goes on: the message was handed to it, or it was woken for something else. Inside np brackets, which it leaves. */
static inline int go_on(const struct kept *k)
{
	struct kbi_cell *c = k->c;
	struct kbi_task *self = k->self;
	uint64_t *value = k->value;

	kbi_np_leave(self);
	if (kbi_unlikely(self->awaits != NULL))
		return wait_slow((kb_event_t *)c, value);
	/* acquire is not needed: the value comes with the wake-up */
	if (kbi_likely(value != NULL))
		*value = a_load_rlx(&c->value);
	return 0;
}

/* Own TLS; or there is something to be looked at first. */
static KBI_SWITCHER int wait_other(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	struct kept kept = { c, value, self };

	__asm__ volatile("" : "+m"(kept));
	if (kbi_unlikely(c->owner != self || !self->vp || kbi_task_is(self, KBI_TASK_MAIL) || !a_zero32_rlx(&c->far)))
		return wait_slow((kb_event_t *)c, value);
	kbi_np_enter(self);
	self->awaits = c;
	if (kbi_unlikely(!kbi_wait_sleep_on(self->vp, self))) {
		kbi_np_leave(self);
		return wait_slow((kb_event_t *)c, value);
	}
	return go_on(&kept);
}

/* Something is to be looked at between two tasks. Inside np brackets, which it leaves. */
static KBI_NOINLINE int wait_looking(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	kbi_run_look(self->vp);
	kbi_np_leave(self);
	return wait_other(c, value, self);
}

/* The common case in line: self, light, finds nothing there, sleeps, and is handed a message. */
static KBI_SWITCHER int wait_bare(struct kbi_cell *c, uint64_t *value, struct kbi_task *self)
{
	struct kept kept = { c, value, self };
	struct kbi_vp *vp = self->vp;
	struct kbi_task *next;

	__asm__ volatile("" : "+m"(kept));
	kbi_np_enter(self);
	/* what it finds is a permit or a message: it is looked for again then */
	if (kbi_unlikely(kbi_run_is_look_due(vp)))
		return wait_looking(c, value, self);
	self->awaits = c;
	/* release: as in kbi_wait_sleep_on */
	a_store_rel(&self->state, vp->waiting_here);
	next = kbi_vp_pop(vp);
	if (kbi_likely(next && !kbi_task_is(next, KBI_TASK_NOT_BARE)))
		kbi_run_switch_bare(vp, self, next, NULL, NULL);
	else
		kbi_run_switch_other(vp, self, next);
	return go_on(&kept);
}

int kb_event_wait(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_cell *c = kbi_event_cell(ev);

	/* an event has an owner: self is not NULL behind the first question */
	if (kbi_unlikely(c->owner != self) || kbi_unlikely(kbi_task_is_hindered(self, KBI_TASK_NOT_BARE | KBI_TASK_MAIL)) ||
	    kbi_unlikely(!a_zero32_rlx(&c->far)))
		return wait_other(c, value, self);
	return wait_bare(c, value, self);
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
		rc = kbi_waitq_sleep(self, kbi_waitq_until(deadline));
	}
	return give(ev, self, value);
}

int kb_event_try(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!is_owner(ev, self))
		return EPERM;
	return kbi_event_pending(ev, self) ? give(ev, self, value) : EAGAIN;
}
