/* space/barrier.c - barriers. Contract in kochab/space.h. Processes that have waited
 * are remembered: if such a process dies, the round can perhaps not be completed,
 * and all waiters are told.
 * Callers: programs. Calls queue, thing. Only wait may switch. */
#include "space/thing.h"

static void init_space_barrier(struct kbi_space_thing *t, const void *count)
{
	t->barrier.left = *(const uint32_t *)count;
}

int kb_space_barrier_open(kb_space_t *s, const char *name, uint32_t count,
	kb_space_barrier_t **barrier)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_BARRIER, .size = count,
		.make = init_space_barrier, .arg = &count };

	return count ? kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)barrier) : EINVAL;
}

/* Arrives, or checks again. op->value: the round in which the thread waits, + 1. */
static int try_barrier_arrival(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;
	uint32_t round = a_load_rlx(&t->barrier.round), left;

	if (op->value)
		return op->value - 1 != round ? 0 :
			a_load_rlx(&t->flags) & KBI_SPACE_BROKEN ? EOWNERDEAD : EAGAIN;
	if (a_load_rlx(&t->flags) & KBI_SPACE_BROKEN)
		return EOWNERDEAD;
	a_or_rlx(&t->ends[0], UINT64_C(1) << op->s->slot);
	left = KBI_SPACE_ONCE(t->barrier.left);
	if (left > 1) {
		t->barrier.left = left - 1;
		op->value = (uint64_t)round + 1;
		return EAGAIN;
	}
	t->barrier.left = t->size;
	a_store_rlx(&t->barrier.round, round + 1);
	kbi_space_queue_call(op, 0, UINT32_MAX);
	return KB_BARRIER_SERIAL;
}

static void undo_barrier_arrival(struct kbi_space_op *op)
{
	op->t->barrier.left++;
}

int kb_space_barrier_wait(kb_space_barrier_t *barrier, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)barrier;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try_barrier_arrival,
		.gave_up = undo_barrier_arrival };

	return kbi_space_queue_do(&op, deadline);
}

static int try_barrier_reset(struct kbi_space_op *op)
{
	struct kbi_space_thing *t = op->t;

	if (kbi_space_queue_any(t, 0))
		return EBUSY;
	t->size = t->barrier.left = (uint32_t)op->value;
	a_store_rlx(&t->ends[0], 0);
	a_and_rlx(&t->flags, ~(uint32_t)KBI_SPACE_BROKEN);
	return 0;
}

int kb_space_barrier_reset(kb_space_barrier_t *barrier, uint32_t count)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)barrier;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try_barrier_reset, .value = count };

	return count ? kbi_space_queue_do(&op, 0) : EINVAL;
}
