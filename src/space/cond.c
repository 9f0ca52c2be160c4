/* space/cond.c - condition variables. Contract in kochab/space.h. A waiter is queued before it unlocks the mutex; it has
 * been signalled when it stands in the queue no more. */
#include "space/thing.h"

int kb_space_cond_open(kb_space_t *s, const char *name, kb_space_cond_t **cond)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_COND };

	return kbi_space_thing_open(s, name, &w, (struct kbi_space_thing **)cond);
}

static uint64_t enter(struct kb_space *s, struct kbi_space_thing *t, struct kbi_space_record *r)
{
	struct kbi_task *self = kbi_self();
	uint64_t word;

	kbi_np_enter(self);
	kbi_space_queue_lock(s, t);
	word = a_load_rlx(&r->word);
	kbi_space_queue_link(s, t, 0, r);
	kbi_space_queue_unlock(t);
	kbi_np_leave(self);
	return word;
}

/* False: it was signalled. */
static bool leave(struct kb_space *s, struct kbi_space_thing *t, struct kbi_space_record *r)
{
	struct kbi_task *self = kbi_self();
	bool queued;

	kbi_np_enter(self);
	kbi_space_queue_lock(s, t);
	queued = a_load_rlx(&r->linked);
	if (queued)
		kbi_space_queue_unlink(s, t, r);
	kbi_space_queue_unlock(t);
	kbi_np_leave(self);
	return queued;
}

int kb_space_cond_wait(kb_space_cond_t *cond, kb_space_mutex_t *mutex, uint64_t deadline)
{
	struct kbi_space_thing *t = (struct kbi_space_thing *)cond;
	struct kb_space *s = kbi_space_of(t);
	struct kbi_space_record *r;
	uint64_t word;
	int e = kbi_space_queue_get(s, &r), again;

	if (e)
		return e;
	word = enter(s, t, r);
	e = kb_space_mutex_unlock(mutex);
	if (!e)
		e = kbi_space_note_wait(s, &r->word, &r->how, word, deadline);
	else
		deadline = 0; /* EPERM: nothing was unlocked */
	if (!leave(s, t, r) && e == ETIMEDOUT)
		e = 0;
	kbi_space_queue_put(s, r);
	if (e == EPERM)
		return e;
	again = kb_space_mutex_lock(mutex, KB_FOREVER);
	return again ? again : e;
}

static int wake(kb_space_cond_t *cond, unsigned n)
{
	struct kbi_space_thing *t = (struct kbi_space_thing *)cond;
	struct kbi_space_op op = { .s = kbi_space_of(t), .t = t };
	struct kbi_task *self;

	/* who waits has queued itself before it unlocked the mutex under which the change was made */
	if (!kbi_space_queue_maybe(t, 0))
		return 0;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_space_queue_lock(op.s, t);
	kbi_space_queue_call(&op, 0, n);
	kbi_space_queue_unlock(t);
	kbi_space_queue_tell_called(&op);
	kbi_np_leave(self);
	return 0;
}

int kb_space_cond_signal(kb_space_cond_t *cond)
{
	return wake(cond, 1);
}

int kb_space_cond_broadcast(kb_space_cond_t *cond)
{
	return wake(cond, UINT32_MAX);
}
