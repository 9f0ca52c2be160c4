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
	if (kbi_unlikely(t->armed & KBI_ARMED_MAIL) && t == kbi_self_raw() && kbi_thread_of(t)->got == kbi_event_cell(ev))
		t->armed &= (uint8_t)~KBI_ARMED_MAIL;
	*ev = (kb_event_t){ .owner = t };
	kbi_event_cell(ev)->home = (uint32_t)(t->bound + 1);
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

static KBI_NOINLINE int wait_slow(kb_event_t *ev, uint64_t *value)
{
	struct kbi_task *self = kbi_waitq_self();

	if (!is_owner(ev, self))
		return EPERM;
	while (!kbi_event_pending(ev, self))
		kbi_wait_sleep(self);
	return give(ev, self, value);
}

/* The common case in line: nothing is there yet, it sleeps once and finds a near message. What it needs afterwards is
 * kept in memory, for the switch loses all registers. */
KBI_SWITCHER int kb_event_wait(kb_event_t *ev, uint64_t *value)
{
	struct {
		struct kbi_cell *c;
		uint64_t *value;
	} kept = { kbi_event_cell(ev), value };
	struct kbi_task *self = kbi_self_raw();
	struct kbi_cell *c = kept.c;

	__asm__ volatile("" : "+m"(kept));
	if (kbi_unlikely(!self || c->owner != self || (self->armed & KBI_ARMED_MAIL)))
		return wait_slow(ev, value);
	/* a far message is wait_slow's matter */
	if (kbi_likely(a_zero32_rlx(&c->flag) && a_zero32_rlx(&c->far))) {
		kbi_np_enter(self);
		if (kbi_unlikely(!self->vp) || kbi_unlikely(!kbi_wait_sleep_on(self->vp, self))) {
			kbi_np_leave(self);
			return wait_slow((kb_event_t *)kept.c, kept.value);
		}
		kbi_np_leave(kbi_self_raw());
	}
	c = kept.c;
	value = kept.value;
	/* acquire is not needed: a near value comes with the wake-up. Nor can mail be there beside it: it is not taken
	 * between the claim and here */
	if (kbi_unlikely(a_zero32_rlx(&c->flag) || !a_zero32_rlx(&c->far)))
		return wait_slow((kb_event_t *)kept.c, value);
	if (value)
		*value = a_load_rlx(&c->value);
	a_store_rlx(&c->flag, 0);
	return 0;
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
