/* space/rwlock.c - readers-writer locks. Contract in kochab/space.h and rwlock.h. All changes are
 * under the object's lock. The read locks of each process are counted, so that those of a dead
 * process are known; their sum is recomputed from the counts.
 * Queue 0: readers, 1: writers, which go first.
 * Callers: programs, recover. Calls queue, thing. Only the two lock functions may switch. */
#include "space/rwlock.h"

int kb_space_rwlock_open(kb_space_t *s, const char *name, kb_space_rwlock_t **lock)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_RWLOCK };

	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)lock);
}

static void change_reader_count(struct kbi_space_thing *t, unsigned slot, int change)
{
	a_store_rlx(&t->held[slot], (uint16_t)(a_load_rlx(&t->held[slot]) + change));
	a_store_rlx(&t->rwlock.readers, a_load_rlx(&t->rwlock.readers) + (uint32_t)change);
}

/* Calls the waiters that may go on. */
static void call_rwlock_waiters(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	if (a_load_rlx(&t->rwlock.writer))
		return;
	if (!kbi_space_queue_any(t, 1))
		kbi_space_queue_call(op, 0, UINT32_MAX);
	else if (!a_load_rlx(&t->rwlock.readers))
		kbi_space_queue_call(op, 1, 1);
}

static int try_space_rdlock(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	/* a reader that has been woken is not sent back for a writer that has come since */
	if (a_load_rlx(&t->rwlock.writer) || (kbi_space_queue_any(t, 1) && op->tries < 2))
		return EAGAIN;
	if (a_load_rlx(&t->held[op->s->slot]) == UINT16_MAX)
		return EOVERFLOW;
	change_reader_count(t, op->s->slot, 1);
	return 0;
}

static int try_space_wrlock(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	if (a_load_rlx(&t->rwlock.writer) || a_load_rlx(&t->rwlock.readers))
		return EAGAIN;
	a_store_rlx(&t->rwlock.writer, op->s->slot + 1);
	return 0;
}

static int unlock_space_rwlock(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	if (a_load_rlx(&t->rwlock.writer) == op->s->slot + 1)
		a_store_rlx(&t->rwlock.writer, 0);
	else if (a_load_rlx(&t->held[op->s->slot]))
		change_reader_count(t, op->s->slot, -1);
	else
		return EPERM;
	call_rwlock_waiters(op);
	return 0;
}

static int lock_space_rwlock(kb_space_rwlock_t *l, int (*try)(struct kbi_space_op *),
	unsigned queue, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)l;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try, .queue = queue,
		.gave_up = call_rwlock_waiters };
	int e = kbi_space_queue_do(&op, deadline);

	return e ? e : a_load_rlx(&h->t->flags) & KBI_SPACE_BROKEN ? EOWNERDEAD : 0;
}

int kb_space_rwlock_rdlock(kb_space_rwlock_t *l, uint64_t deadline)
{
	return lock_space_rwlock(l, try_space_rdlock, 0, deadline);
}

int kb_space_rwlock_wrlock(kb_space_rwlock_t *l, uint64_t deadline)
{
	return lock_space_rwlock(l, try_space_wrlock, 1, deadline);
}

int kb_space_rwlock_unlock(kb_space_rwlock_t *l)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)l;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = unlock_space_rwlock };

	return kbi_space_queue_do(&op, 0);
}

int kb_space_rwlock_consistent(kb_space_rwlock_t *l)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)l;
	struct kbi_space_thing *t = h->t;

	if (a_load_rlx(&t->rwlock.writer) != h->s->slot + 1 ||
			!(a_load_rlx(&t->flags) & KBI_SPACE_BROKEN))
		return EINVAL;
	a_and_rlx(&t->flags, ~(uint32_t)KBI_SPACE_BROKEN);
	return 0;
}

void kbi_space_rwlock_orphan(struct kbi_space_thing *t, unsigned slot)
{
	uint32_t sum = 0;

	a_store_rlx(&t->held[slot], 0);
	for (unsigned i = 0; i < KBI_SPACE_PROCS; i++)
		sum += a_load_rlx(&t->held[i]);
	a_store_rlx(&t->rwlock.readers, sum);
	if (a_load_rlx(&t->rwlock.writer) != slot + 1)
		return;
	/* release: before the lock is free; pairs with the next holder's
	 * acquire of the object's lock */
	a_or_acqrel(&t->flags, KBI_SPACE_BROKEN);
	a_store_rel(&t->rwlock.writer, 0);
}
