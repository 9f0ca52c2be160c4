/* sync/select.c - waiting for several channels and events at once. All channels are locked, in the
 * order of their addresses, for the first look and the queueing. So no thread can serve the caller
 * before it is queued everywhere, and of two selects that meet only the sleeping select has to be
 * claimed. Events need no queue: only their owner selects them, and a notification wakes the owner.
 * Callers: all rooms above. Calls channel, event, malloc (many cases). May switch. */
#include <errno.h>
#include <stdlib.h>

#include "sync/channel.h"
#include "sync/event.h"

/* More cases than this take their places from malloc. */
enum { CASES_ON_STACK = 8 };

struct selecting {
	kb_select_case_t *cases;
	size_t count;
	struct kbi_spot *spots;  /* a spot for each case */
	kb_chan_t **order;       /* the channels, by address, each once */
	size_t n_order;
	size_t start;            /* the case to look at first */
	struct kbi_pick pick;
};

/* ---- all locks ------------------------------------------------------------------------------- */

/* Inserts a channel in the order of addresses, unless it is there already. */
static void add_channel(struct selecting *s, kb_chan_t *ch)
{
	size_t i = s->n_order;

	while (i > 0 && s->order[i - 1] > ch)
		i--;
	if (i > 0 && s->order[i - 1] == ch)
		return;
	for (size_t k = s->n_order; k > i; k--)
		s->order[k] = s->order[k - 1];
	s->order[i] = ch;
	s->n_order++;
}

static void lock_all(struct selecting *s)
{
	for (size_t i = 0; i < s->n_order; i++)
		kbi_chan_lock(s->order[i]);
}

static void unlock_all(struct selecting *s)
{
	for (size_t i = s->n_order; i-- > 0;)
		kbi_chan_unlock(s->order[i]);
}

/* ---- one look at all cases ------------------------------------------------------------------- */

static int take_event(kb_select_case_t *c, struct kbi_task *self)
{
	uint64_t v;

	if (!kbi_event_pending(c->event, self))
		return EAGAIN;
	v = kbi_event_take(c->event, self);
	if (c->element)
		*(uint64_t *)c->element = v;
	return 0;
}

/* Performs the first possible case, from `start` on. Returns 0 and *chosen, or
 * EAGAIN. Under all locks. */
static int try_select_cases(struct selecting *s, size_t *chosen, struct kbi_pick **served)
{
	for (size_t k = 0; k < s->count; k++) {
		size_t i = (s->start + k) % s->count;
		kb_select_case_t *c = &s->cases[i];
		int rc;

		if (c->op == KB_SELECT_EVENT)
			rc = take_event(c, s->pick.task);
		else
			rc = kbi_chan_try(c->chan, (enum kbi_chan_way)c->op, c->element, served);
		if (rc != EAGAIN) {
			c->error = rc;
			*chosen = i;
			return 0;
		}
	}
	return EAGAIN;
}

static void queue_all(struct selecting *s)
{
	for (size_t i = 0; i < s->count; i++) {
		kb_select_case_t *c = &s->cases[i];

		s->spots[i] = (struct kbi_spot){ .pick = &s->pick, .element = c->element, .index = i };
		if (c->op != KB_SELECT_EVENT)
			kbi_chan_queue(c->chan, (enum kbi_chan_way)c->op, &s->spots[i]);
	}
}

static void unqueue_all(struct selecting *s)
{
	kbi_np_enter(s->pick.task);
	for (size_t i = 0; i < s->count; i++) {
		kb_select_case_t *c = &s->cases[i];

		if (c->op == KB_SELECT_EVENT)
			continue;
		kbi_chan_lock(c->chan);
		kbi_chan_unqueue(c->chan, (enum kbi_chan_way)c->op, &s->spots[i]);
		kbi_chan_unlock(c->chan);
	}
	kbi_np_leave(s->pick.task);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Decides the pick by a pending event and takes it (true), unless a channel has decided. */
static bool pick_event(struct selecting *s)
{
	for (size_t k = 0; k < s->count; k++) {
		size_t i = (s->start + k) % s->count;
		kb_select_case_t *c = &s->cases[i];

		if (c->op != KB_SELECT_EVENT || !kbi_event_pending(c->event, s->pick.task))
			continue;
		if (!kbi_chan_claim(&s->pick))
			return false;
		s->pick.index = i;
		s->pick.error = take_event(c, s->pick.task);
		return true;
	}
	return false;
}

static int await_select_pick(struct selecting *s, uint64_t deadline)
{
	int rc = 0;

	/* acquire: pairs with the release in kbi_chan_wake */
	while (!a_load_acq(&s->pick.done)) {
		if (pick_event(s))
			return 0;
		if (rc && kbi_chan_claim(&s->pick))
			return rc;
		rc = kbi_waitq_sleep(s->pick.task, kbi_waitq_until_handling(rc ? KBI_FOREVER : deadline));
	}
	return 0;
}

static int wait_served(struct selecting *s, uint64_t deadline, size_t *chosen)
{
	int rc = await_select_pick(s, deadline);

	unqueue_all(s);
	if (rc)
		return rc;
	*chosen = s->pick.index;
	s->cases[s->pick.index].error = s->pick.error;
	return 0;
}

static int select_in(struct selecting *s, uint64_t deadline, size_t *chosen)
{
	struct kbi_task *self = s->pick.task;
	struct kbi_pick *served = NULL;
	int rc;

	for (size_t i = 0; i < s->count; i++)
		if (s->cases[i].op != KB_SELECT_EVENT)
			add_channel(s, s->cases[i].chan);
	kbi_np_enter(self);
	lock_all(s);
	rc = try_select_cases(s, chosen, &served);
	if (rc == EAGAIN && deadline != 0)
		queue_all(s);
	unlock_all(s);
	kbi_chan_wake(served);
	kbi_np_leave(self);
	if (rc == 0)
		return 0;
	return deadline == 0 ? ETIMEDOUT : wait_served(s, deadline, chosen);
}

/* ---- the public function --------------------------------------------------------------------- */

static bool is_valid(const kb_select_case_t *c, const struct kbi_task *self)
{
	switch (c->op) {
	case KB_SELECT_RECV:
	case KB_SELECT_SEND:
		return c->chan && c->element;
	case KB_SELECT_EVENT:
		return c->event && c->event->owner == self;
	}
	return false;
}

/* Returns a case to start at, from the clock: selecting threads share no memory. A product alone
 * maps even steps to even steps, so a thread that selects in a loop could pass a case by for long:
 * therefore the high digits are mixed into the low digits. */
static size_t random_first_case(size_t count)
{
	uint64_t r = kbi_cpu_ticks() * 0x9E3779B97F4A7C15u;

	r = (r ^ r >> 29) * 0xBF58476D1CE4E5B9u;
	r = (r ^ r >> 32) * 0x94D049BB133111EBu;
	return (size_t)((r >> 32) * count >> 32);
}

int kb_select(kb_select_case_t *cases, size_t count, uint64_t deadline, size_t *chosen)
{
	struct kbi_spot spots[CASES_ON_STACK];
	kb_chan_t *order[CASES_ON_STACK];
	struct selecting s = { .cases = cases, .count = count, .spots = spots, .order = order };
	void *more = NULL;
	int rc;

	if (count == 0 || count > UINT32_MAX / 2)
		return EINVAL;
	s.pick.task = kbi_waitq_self();
	for (size_t i = 0; i < count; i++)
		if (!is_valid(&cases[i], s.pick.task))
			return EINVAL;
	if (count > CASES_ON_STACK) {
		more = malloc(count * (sizeof *s.spots + sizeof *s.order));
		if (!more)
			return ENOMEM;
		s.spots = more;
		s.order = (kb_chan_t **)(s.spots + count);
	}
	s.start = random_first_case(count);
	rc = select_in(&s, deadline, chosen);
	free(more);
	return rc;
}
