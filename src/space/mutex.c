/* space/mutex.c - robust mutexes. Contract in kochab/space.h. Locked and unlocked by a single
 * compare-and-swap of the owner while no thread waits; else under the object's lock.
 * Callers: programs, cond, recover. Calls queue, thing. Only lock may switch. */
#include "space/mutex.h"

int kb_space_mutex_open(kb_space_t *s, const char *name, kb_space_mutex_t **mutex)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_MUTEX };

	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)mutex);
}

/* Tries to take the mutex. acquire: pairs with the release in kb_space_mutex_unlock. */
static bool grab_space_mutex(struct kb_space *s, struct kbi_space_thing *t)
{
	uint32_t none = 0;

	return a_load_rlx(&t->mutex.owner) == 0 && a_cas_acq(&t->mutex.owner, &none, s->slot + 1);
}

/* Returns the state of a mutex that this process has just locked. */
static int space_mutex_state(struct kbi_space_hold *h)
{
	uint32_t flags = a_load_rlx(&h->t->flags);

	if (kbi_likely(!flags))
		return 0;
	if (flags & KBI_SPACE_LOST) {
		kb_space_mutex_unlock((kb_space_mutex_t *)h);
		return ENOTRECOVERABLE;
	}
	return flags & KBI_SPACE_BROKEN ? EOWNERDEAD : 0;
}

/* Returns whether the owner can exist. An entry becomes free only when all that
 * its process had is free. */
static bool has_possible_owner(const struct kb_space *s, struct kbi_space_thing *t)
{
	/* acquire of state: pairs with the release in free_entry (recover.c) */
	uint32_t owner = a_load_rlx(&t->mutex.owner);

	return owner == 0 || (owner <= KBI_SPACE_PROCS &&
		a_load_acq(&kbi_space_proc(s, owner - 1)->state) != KBI_SPACE_FREE);
}

static int try_space_mutex_lock(struct kbi_space_op *op)
{
	/* sc: the object's lock before the read of the owner; pairs with the fence in
	 * kb_space_mutex_unlock */
	a_fence_after_rmw();
	if (grab_space_mutex(op->s, op->t))
		return 0;
	return has_possible_owner(op->s, op->t) ? EAGAIN : EPROTO;
}

int kb_space_mutex_lock(kb_space_mutex_t *mutex, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)mutex;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try_space_mutex_lock };
	int e = grab_space_mutex(op.s, op.t) ? 0 : kbi_space_queue_do(&op, deadline);

	return e ? e : space_mutex_state(h);
}

static int call_next_mutex_waiter(struct kbi_space_op *op)
{
	kbi_space_queue_call(op, 0, 1);
	return 0;
}

int kb_space_mutex_unlock(kb_space_mutex_t *mutex)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)mutex;
	struct kbi_space_thing *t = h->t;
	struct kbi_space_op op = { .s = h->s, .t = t, .try = call_next_mutex_waiter };
	bool all = false;

	if (a_load_rlx(&t->mutex.owner) != op.s->slot + 1)
		return EPERM;
	if (kbi_unlikely(a_load_rlx(&t->flags) & KBI_SPACE_BROKEN)) {
		a_or_rlx(&t->flags, KBI_SPACE_LOST);
		all = true;
	}
	/* release: pairs with the acquire in grab_space_mutex */
	a_xchg_acqrel(&t->mutex.owner, 0);
	/* sc: pairs with the fence in try_space_mutex_lock: that thread sees no owner, or is
	 * seen to hold the lock or to be queued */
	a_fence_after_rmw();
	if (all)
		kbi_space_thing_wake(h);
	else if (kbi_space_queue_maybe(t, 0))
		kbi_space_queue_do(&op, 0);
	return 0;
}

int kb_space_mutex_consistent(kb_space_mutex_t *mutex)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)mutex;
	struct kbi_space_thing *t = h->t;

	if (a_load_rlx(&t->mutex.owner) != h->s->slot + 1 ||
			!(a_load_rlx(&t->flags) & KBI_SPACE_BROKEN))
		return EINVAL;
	a_and_rlx(&t->flags, ~(uint32_t)KBI_SPACE_BROKEN);
	return 0;
}

void kbi_space_mutex_orphan(struct kbi_space_thing *t, unsigned slot)
{
	if (a_load_rlx(&t->mutex.owner) != slot + 1)
		return;
	/* release: before the mutex is free; pairs with the acquire in grab_space_mutex */
	a_or_acqrel(&t->flags, KBI_SPACE_BROKEN);
	a_store_rel(&t->mutex.owner, 0);
}
