/* core/wait.c - sleep and wake. Contract in wait.h; the protocol's argument is in core/domain.c.
 * Runs on the caller's stack inside np brackets; no locks. kbi_wait_sleep switches. */
#include "core/wait.h"

#include "core/domain.h"
#include "core/foreign.h"
#include "core/run.h"
#include "os/sys.h"

int (*kbi_wait_due)(struct kbi_task *self);
int (*kbi_wait_handlers)(struct kbi_task *self);

struct kbi_task *kbi_self(void)
{
	struct kbi_task *t = kbi_self_raw();

	return kbi_likely(t != NULL) ? t : kbi_foreign_enter();
}

/* ---- sleep ----------------------------------------------------------------------------------- */

KBI_SWITCHER void kbi_wait_sleep(struct kbi_task *self)
{
	if (kbi_unlikely(!self->vp)) {
		kbi_foreign_sleep(self, UINT64_MAX);
		return;
	}
	kbi_np_enter(self);
	/* a tick before the bracket may have moved self to another VP */
	kbi_wait_sleep_on(self->vp, self);
	kbi_np_leave(self);
}

/* ---- wake ------------------------------------------------------------------------------------ */

static inline void wake_task(struct kbi_task *t, bool front)
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
	wake_task(t, false);
}

void kbi_wait_wake_next(struct kbi_task *t)
{
	wake_task(t, true);
}

/* Delivers from vp. To a waiter of another VP that is awake the value goes by mail. */
static void deliver_from(struct kbi_vp *vp, struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *t = c->owner;
	struct kbi_vp *home;
	uint64_t st;

	/* the owner never leaves its VP: its descriptor, which that VP writes, need not be read */
	if (c->home && c->home != vp->id + 1) {
		kbi_domain_post(vp, kbi_vps[c->home - 1], t, c, KBI_MAIL_CELL, value);
		return;
	}
	/* acquire: pairs with the release in kbi_wait_sleep_on */
	st = a_load_acq(&t->state);
	if (kbi_likely(st == vp->waiting_here)) {
		if (t->awaits == c)
			kbi_cell_hand(c, t, value);
		/* a message that came by mail is older: the far slot, which is newer, must then take
		 * this value */
		else if (a_load_rlx(&c->far) || !kbi_cell_give(c, t, value))
			kbi_cell_put(c, value);
		kbi_domain_claim(vp, t, KBI_WAKE_PERMIT);
		kbi_vp_push(vp, t, false);
		return;
	}
	home = kbi_state_kind(st) == KBI_TASK_WAITING ? kbi_vps[kbi_state_vp(st)] : vp;
	if (home != vp && (kbi_task_is(t, KBI_TASK_BOUND) ||
			   a_load_rlx(&home->keeper) == KBI_KEEPER_SELF)) {
		kbi_domain_post(vp, home, t, c, KBI_MAIL_CELL, value);
		return;
	}
	kbi_cell_put(c, value);
	kbi_domain_wake_far(vp, t, false);
}

void kbi_wait_deliver_slow(struct kbi_cell *c, uint64_t value, struct kbi_task *self)
{
	deliver_from(self->vp, c, value);
	kbi_np_leave(self);
}

void kbi_wait_deliver_from_outside(struct kbi_cell *c, uint64_t value)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_cell_put(c, value);
	kbi_domain_wake_from_outside(c->owner);
	kbi_np_leave(self);
}
