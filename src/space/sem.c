/* space/sem.c - counting semaphores. Contract in kochab/space.h. A unit that a process holds when
 * it dies stays taken, as with POSIX's semaphores.
 * Callers: programs. Calls queue, thing. Only wait may switch. */
#include "space/thing.h"

static void init_space_sem(struct kbi_space_thing *t, const void *value)
{
	a_store_rlx(&t->sem.value, *(const uint32_t *)value);
}

int kb_space_sem_open(kb_space_t *s, const char *name, uint32_t value, kb_space_sem_t **sem)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_SEM, .make = init_space_sem, .arg = &value };

	if (value > KB_SEM_VALUE_MAX)
		return EINVAL;
	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)sem);
}

static int try_space_sem_wait(struct kbi_space_op *op)
{
	uint32_t v = a_load_rlx(&op->t->sem.value);

	if (!v)
		return EAGAIN;
	a_store_rlx(&op->t->sem.value, v - 1);
	return 0;
}

static int try_space_sem_post(struct kbi_space_op *op)
{
	uint32_t v = a_load_rlx(&op->t->sem.value);

	if (v >= KB_SEM_VALUE_MAX)
		return EOVERFLOW;
	a_store_rlx(&op->t->sem.value, v + 1);
	kbi_space_queue_call(op, 0, 1);
	return 0;
}

int kb_space_sem_wait(kb_space_sem_t *sem, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)sem;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try_space_sem_wait };

	return kbi_space_queue_do(&op, deadline);
}

int kb_space_sem_post(kb_space_sem_t *sem)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)sem;
	struct kbi_space_op op = { .s = h->s, .t = h->t, .try = try_space_sem_post };

	return kbi_space_queue_do(&op, 0);
}

uint32_t kb_space_sem_value(kb_space_sem_t *sem)
{
	return a_load_rlx(&((struct kbi_space_hold *)sem)->t->sem.value);
}
