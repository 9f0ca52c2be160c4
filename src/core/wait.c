/* core/wait.c - sleep and wake. Contract in wait.h; the protocol's argument is in core/domain.c.
 * Runs on the caller's stack inside np brackets. */
#include "core/wait.h"

#include "core/domain.h"
#include "core/foreign.h"
#include "core/run.h"
#include "os/sys.h"

struct kbi_task *kbi_self(void)
{
	struct kbi_task *t = kbi_self_raw();

	return kbi_likely(t != NULL) ? t : kbi_foreign_enter();
}

/* ---- sleep ----------------------------------------------------------------------------------- */

/* self runs on vp, inside np brackets. False: there was a permit. */
KBI_SWITCHES static inline __attribute__((always_inline)) bool sleep_on(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *next;

	/* Looked at while still RUNNING: a wake-up that is found leaves a permit. Once WAITING nobody looks at any
	 * source before the context is saved: self could be claimed, queued and given away without one. */
	kbi_run_look_if_due(vp);
	/* acquire: partner is the release of who set it */
	if (kbi_unlikely(a_load_rlx(&kbi_notify[self->index])) && a_xchg_acq(&kbi_notify[self->index], 0))
		return false;
	/* release: partner is the acquire of who reads WAITING to claim it while this VP sleeps. The context is
	 * not saved yet, but only this VP, or who takes its domain when it is idle, may resume us. */
	a_store_rel(&self->state, vp->waiting_here);
	next = kbi_vp_pop(vp);
	kbi_run_switch_to(vp, self, next, NULL, NULL);
	return true;
}

KBI_SWITCHER void kbi_wait_sleep(struct kbi_task *self)
{
	if (kbi_unlikely(!self->vp)) {
		kbi_foreign_sleep(self, UINT64_MAX);
		return;
	}
	kbi_np_enter(self);
	/* a tick before the bracket may have moved us */
	sleep_on(self->vp, self);
	kbi_np_leave(self);
}

/* The common case in line: nothing is there yet, it sleeps once and finds a near message. */
KBI_SWITCHER int kbi_wait_receive(struct kbi_cell *c, uint64_t *value, kbi_wait_receive_fn *slow)
{
	struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(!self || c->owner != self || (self->armed & KBI_ARMED_MAIL)))
		return slow(c, value);
	/* acquire: as in kbi_cell_pending; a far message is slow's matter */
	if (kbi_likely((a_load_acq(&c->flag) | a_load_rlx(&c->far)) == 0)) {
		kbi_np_enter(self);
		if (kbi_unlikely(!self->vp) || kbi_unlikely(!sleep_on(self->vp, self))) {
			kbi_np_leave(self);
			return slow(c, value);
		}
		kbi_np_leave(self);
	}
	if (kbi_unlikely(!a_load_acq(&c->flag) || a_load_rlx(&c->far) || (self->armed & KBI_ARMED_MAIL)))
		return slow(c, value);
	if (value)
		*value = a_load_rlx(&c->value);
	a_store_rlx(&c->flag, 0);
	return 0;
}

/* ---- wake ------------------------------------------------------------------------------------ */

static inline void wake(struct kbi_task *t, bool front)
{
	struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(!self || !self->vp)) {
		kbi_domain_wake_from_outside(t);
		return;
	}
	kbi_np_enter(self);
	kbi_domain_wake(self->vp, t, front);
	kbi_np_leave(self);
}

void kbi_wait_wake(struct kbi_task *t)
{
	wake(t, false);
}

void kbi_wait_wake_next(struct kbi_task *t)
{
	wake(t, true);
}

/* To a waiter of another VP that is awake the value goes by mail. */
static void deliver_from(struct kbi_vp *vp, struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *t = c->owner;
	struct kbi_vp *home;
	uint64_t st;

	/* to a VP where the owner always is: its descriptor, which that VP writes, is not looked at */
	if (c->home && c->home != vp->id + 1) {
		kbi_domain_post(vp, kbi_vps[c->home - 1], t, c, KBI_MAIL_CELL, value);
		return;
	}
	st = a_load_acq(&t->state);
	if (kbi_likely(st == vp->waiting_here)) {
		/* what came by mail is older: the far slot, which is newer than that, must take it then */
		kbi_cell_put(c, value, !(t->armed & KBI_ARMED_MAIL));
		kbi_domain_claim(vp, t, KBI_WAKE_PERMIT);
		kbi_vp_push(vp, t, false);
		return;
	}
	home = kbi_state_kind(st) == KBI_TASK_WAITING ? kbi_vps[kbi_state_vp(st)] : vp;
	if (home != vp && (t->bound >= 0 || a_load_rlx(&home->keeper) == KBI_KEEPER_SELF)) {
		kbi_domain_post(vp, home, t, c, KBI_MAIL_CELL, value);
		return;
	}
	kbi_cell_put(c, value, false);
	kbi_domain_wake_far(vp, t, false);
}

/* The common case in line, without a call: the owner waits here, no idle VP need be told. */
static inline bool deliver_here(struct kbi_vp *vp, struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *t = c->owner;

	if (kbi_unlikely(c->home || a_load_acq(&t->state) != vp->waiting_here || a_load_rlx(&c->far) || t->armed ||
			 a_load_rlx(&kbi_notify[t->index]) || !kbi_vp_content(vp)))
		return false;
	a_store_rlx(&c->value, value);
	a_store_rlx(&c->flag, 1);
	kbi_vp_enqueue_here(vp, t, false);
	return true;
}

/* Inside np brackets, which it leaves. */
static KBI_NOINLINE void deliver_slow(struct kbi_task *self, struct kbi_cell *c, uint64_t value)
{
	deliver_from(self->vp, c, value);
	kbi_np_leave(self);
}

/* From a kernel thread that is no VP. */
static KBI_NOINLINE void deliver_from_outside(struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_cell_put(c, value, false);
	kbi_domain_wake_from_outside(c->owner);
	kbi_np_leave(self);
}

void kbi_wait_deliver(struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(!self || !self->vp)) {
		deliver_from_outside(c, value);
		return;
	}
	kbi_np_enter(self);
	if (kbi_likely(deliver_here(self->vp, c, value)))
		kbi_np_leave(self);
	else
		deliver_slow(self, c, value);
}
