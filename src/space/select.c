/* space/select.c - waiting for any of several cases. Contract in kochab/space.h. The
 * thread waits for a single record; its records in the channels' queues, and the events'
 * `how`, lead to that record.
 * Callers: programs. Calls chan, event, queue, note. May switch. */
#include "core/timer.h"
#include "space/chan.h"
#include "space/event.h"

struct selecting {
	struct kb_space *s;
	kb_space_case_t *cases;
	size_t n;
	uint64_t deadline;
	struct kbi_space_seat own; /* no record: the thread has not had to wait */
	struct kbi_space_seat link[KBI_SPACE_MOST_CASES];  /* records in the queues of channels */
	uint64_t called; /* bits of the channels whose record was called at the last wait */
	uint64_t lost; /* bits of the channels whose record may still stand in the queue */
};

static struct kbi_space_hold *hold_of_case(const kb_space_case_t *c)
{
	return c->op == KB_SELECT_EVENT ? (struct kbi_space_hold *)c->event :
		(struct kbi_space_hold *)c->chan;
}

static bool is_chan(const kb_space_case_t *c)
{
	return c->op != KB_SELECT_EVENT;
}

/* Tries the channel. link: if the thread must wait, its record stands in the queue. */
static int try_chan(struct selecting *x, size_t i, bool link)
{
	kb_space_case_t *c = &x->cases[i];
	struct kbi_task *self = kbi_self();
	struct kbi_space_op op;
	int e;

	kbi_space_chan_op(&op, hold_of_case(c), c->op == KB_SELECT_SEND, c->element);
	kbi_np_enter(self);
	e = kbi_space_queue_lock(x->s, op.t, x->deadline);
	if (!e) {
		e = op.try(&op);
		if (e == EAGAIN && link)
			kbi_space_queue_link(x->s, op.t, op.queue, &x->link[i]);
		kbi_space_queue_unlock(op.t);
		kbi_space_queue_tell_called(&op);
	}
	kbi_np_leave(self);
	return e == ETIMEDOUT ? EAGAIN : e;
}

static void unlink_chan(struct selecting *x, size_t i)
{
	struct kbi_space_thing *t = hold_of_case(&x->cases[i])->t;
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	if (kbi_space_queue_lock_soon(x->s, t)) {
		x->lost |= UINT64_C(1) << i;
	} else {
		if (a_load_rlx(&x->link[i].r->linked))
			kbi_space_queue_unlink(x->s, t, x->cases[i].op == KB_SELECT_SEND, x->link[i].r);
		else
			x->called |= UINT64_C(1) << i;
		kbi_space_queue_unlock(t);
	}
	kbi_np_leave(self);
}

/* Calls a further waiter where this thread was called and has done a different case. */
static void renew_chan_call(struct selecting *x, size_t i)
{
	kb_space_case_t *c = &x->cases[i];
	struct kbi_task *self = kbi_self();
	struct kbi_space_op op;

	kbi_space_chan_op(&op, hold_of_case(c), c->op == KB_SELECT_SEND, c->element);
	kbi_np_enter(self);
	if (!kbi_space_queue_lock_soon(x->s, op.t)) {
		kbi_space_chan_renew(&op);
		kbi_space_queue_unlock(op.t);
		kbi_space_queue_tell_called(&op);
	}
	kbi_np_leave(self);
}

/* Performs a possible case. Returns its number, or n. `link`: waits
 * where a case is not possible. */
static size_t try_space_cases(struct selecting *x, size_t first, bool link, size_t *linked)
{
	for (size_t k = 0; k < x->n; k++) {
		size_t i = (first + k) % x->n;
		kb_space_case_t *c = &x->cases[i];
		uint64_t word;

		if (is_chan(c)) {
			c->error = try_chan(x, i, link);
		} else {
			if (link) {
				a_store_rlx(&hold_of_case(c)->t->how,
					KBI_SPACE_HOW(KBI_SPACE_CHAINED, x->s->slot, x->own.ref & 0xffff));
				a_fence_sc(); /* sc: pairs with the fence in kbi_space_note_tell */
			}
			c->error = kbi_space_event_take(hold_of_case(c)->t, c->element, &word);
		}
		*linked = k + (c->error == EAGAIN);
		if (c->error != EAGAIN)
			return i;
	}
	return x->n;
}

static void unlink_linked_chans(struct selecting *x, size_t first, size_t linked)
{
	x->called = 0;
	for (size_t k = 0; k < linked; k++) {
		size_t i = (first + k) % x->n;

		if (is_chan(&x->cases[i]))
			unlink_chan(x, i);
	}
}

static int get_records(struct selecting *x)
{
	int e = kbi_space_queue_get(x->s, &x->own);

	for (size_t i = 0; i < x->n && !e; i++) {
		if (!is_chan(&x->cases[i]))
			continue;
		e = kbi_space_queue_get(x->s, &x->link[i]);
		if (!e)
			a_store_rlx(&x->link[i].r->chain, x->own.ref);
	}
	return e;
}

static void put_records(struct selecting *x)
{
	for (size_t i = 0; i < x->n; i++) {
		if (!is_chan(&x->cases[i]) && x->own.r)
			a_store_rlx(&hold_of_case(&x->cases[i])->t->how,
				KBI_SPACE_HOW(KBI_SPACE_NOBODY, 0, 0));
		if (x->lost >> i & 1)
			kbi_space_queue_retire(x->s);
		else if (x->link[i].r)
			kbi_space_queue_put(x->s, &x->link[i]);
	}
	if (x->own.r)
		kbi_space_queue_put(x->s, &x->own);
}

static int wait_for_space_case(struct selecting *x, size_t first, uint64_t deadline, size_t *chosen)
{
	int e = get_records(x);
	unsigned tries = 0;
	size_t linked;

	while (!e) {
		uint64_t word = a_load_rlx(&x->own.r->word);

		*chosen = try_space_cases(x, first, true, &linked);
		if (*chosen == x->n)
			e = kbi_space_queue_is_late(tries++, deadline) ? ETIMEDOUT :
				kbi_space_note_wait(x->s, &x->own.r->word, &x->own.r->how, word, deadline);
		unlink_linked_chans(x, first, linked);
		if (*chosen < x->n)
			break;
		if (x->lost && !e)
			e = EPROTO;
	}
	if (e == ETIMEDOUT && (*chosen = try_space_cases(x, first, false, &linked)) < x->n)
		e = 0;
	for (size_t i = 0; i < x->n; i++)
		if (x->called >> i & 1 && i != *chosen)
			renew_chan_call(x, i);
	put_records(x);
	return e;
}

int kb_space_select(kb_space_case_t *cases, size_t count, uint64_t deadline, size_t *chosen)
{
	static a32 turn;
	struct selecting x = { .cases = cases, .n = count, .deadline = deadline };
	size_t first, linked;

	if (!count || count > KBI_SPACE_MOST_CASES)
		return EINVAL;
	x.s = hold_of_case(&cases[0])->s;
	for (size_t i = 0; i < count; i++)
		if (cases[i].op > KB_SELECT_EVENT || hold_of_case(&cases[i])->s != x.s)
			return EINVAL;
	first = a_add_rlx(&turn, 1) % count;
	*chosen = try_space_cases(&x, first, false, &linked);
	if (*chosen < count)
		return 0;
	return deadline == 0 ? ETIMEDOUT : wait_for_space_case(&x, first, deadline, chosen);
}
