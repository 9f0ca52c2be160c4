/* space/cond.c - condition variables. Contract in kochab/space.h. A waiter is queued before it
 * unlocks the mutex; it has been signalled when it does not stand in the queue any more.
 * Callers: programs. Calls mutex, note, queue, thing. Only wait may switch. */
#include "os/sys.h"
#include "space/thing.h"

#define LOOK_NS UINT64_C(1000000000)

int kb_space_cond_open(kb_space_t *s, const char *name, kb_space_cond_t **cond)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_COND };

	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)cond);
}

static int enter_space_cond(const struct kbi_space_hold *h, const struct kbi_space_seat *seat,
	uint64_t *word)
{
	struct kbi_task *self = kbi_self();
	int e;

	kbi_np_enter(self);
	e = kbi_space_queue_lock(h->s, h->t, 0);
	if (!e) {
		*word = a_load_rlx(&seat->r->word);
		kbi_space_queue_link(h->s, h->t, 0, seat);
		kbi_space_queue_unlock(h->t);
	}
	kbi_np_leave(self);
	return e;
}

/* Leaves the queue and gives the seat back. False: the waiter was signalled. */
static bool leave_space_cond(const struct kbi_space_hold *h, const struct kbi_space_seat *seat)
{
	struct kbi_task *self = kbi_self();
	bool queued = true, stuck;

	kbi_np_enter(self);
	stuck = kbi_space_queue_lock_soon(h->s, h->t);
	if (!stuck) {
		queued = a_load_rlx(&seat->r->linked);
		if (queued)
			kbi_space_queue_unlink(h->s, h->t, 0, seat->r);
		kbi_space_queue_unlock(h->t);
	}
	kbi_np_leave(self);
	if (stuck)
		kbi_space_queue_retire(h->s);
	else
		kbi_space_queue_put(h->s, seat);
	return queued;
}

/* Locks the mutex again. Checks repeatedly, by a time-out, whether the mutex still has an owner. */
static int relock_space_mutex(kb_space_mutex_t *mutex)
{
	int e;

	do
		e = kb_space_mutex_lock(mutex, kbi_sys_now() + LOOK_NS);
	while (e == ETIMEDOUT);
	return e;
}

int kb_space_cond_wait(kb_space_cond_t *cond, kb_space_mutex_t *mutex, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)cond;
	struct kbi_space_seat seat;
	uint64_t word;
	int e = kbi_space_queue_get(h->s, &seat), again;

	if (e)
		return e;
	e = enter_space_cond(h, &seat, &word);
	if (e) {
		kbi_space_queue_put(h->s, &seat);
		return e;
	}
	e = kb_space_mutex_unlock(mutex);
	if (!e)
		e = kbi_space_note_wait(h->s, &seat.r->word, &seat.r->how, word, deadline);
	else
		deadline = 0; /* EPERM: the mutex was not unlocked */
	if (!leave_space_cond(h, &seat) && e == ETIMEDOUT)
		e = 0;
	if (e == EPERM)
		return e;
	again = relock_space_mutex(mutex);
	return again ? again : e;
}

static int wake_space_cond(kb_space_cond_t *cond, unsigned n)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)cond;
	struct kbi_space_thing *t = h->t;
	struct kbi_space_op op = { .s = h->s, .t = t };
	struct kbi_task *self;
	int e;

	/* a waiter has queued itself before it unlocked the mutex under which the change was made */
	if (!kbi_space_queue_maybe(t, 0))
		return 0;
	self = kbi_self();
	kbi_np_enter(self);
	e = kbi_space_queue_lock(op.s, t, 0);
	if (!e) {
		kbi_space_queue_call(&op, 0, n);
		kbi_space_queue_unlock(t);
		kbi_space_queue_tell_called(&op);
	}
	kbi_np_leave(self);
	return e;
}

int kb_space_cond_signal(kb_space_cond_t *cond)
{
	return wake_space_cond(cond, 1);
}

int kb_space_cond_broadcast(kb_space_cond_t *cond)
{
	return wake_space_cond(cond, UINT32_MAX);
}
