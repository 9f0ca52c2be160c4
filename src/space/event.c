/* space/event.c - a bell with a message. Contract in kochab/space.h and event.h. A notifier writes
 * a single line, the word and the message, and reads another line, which the waiter writes only
 * when it goes to wait elsewhere: so a message that is polled for costs the move of a single cache
 * line. The lower half of the word counts notifications, the upper half further reasons to look.
 * Callers: programs, select. Calls note, thing. Only kb_space_event_wait may switch. */
#include "space/event.h"

int kb_space_event_open(kb_space_t *s, const char *name, unsigned ends, kb_space_event_t **event)
{
	struct kbi_space_wish w = { .type = KBI_SPACE_EVENT, .ends = ends };

	if (!ends || ends & ~(unsigned)(KB_SPACE_RECV | KB_SPACE_SEND))
		return EINVAL;
	return kbi_space_thing_open(s, name, &w, (struct kbi_space_hold **)event);
}

int kb_space_event_notify(kb_space_event_t *event, uint64_t value)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)event;
	struct kbi_space_thing *t = h->t;

	a_store_rlx(&t->event.value, value);
	/* release: pairs with the acquire in kbi_space_event_take */
	a_add_acqrel(&t->event.word, 1);
	kbi_space_note_tell(h->s, &t->how);
	return kbi_space_thing_gone(t, 0);
}

int kbi_space_event_take(struct kbi_space_thing *t, uint64_t *value, uint64_t *word)
{
	int gone = kbi_space_thing_gone(t, 1);

	/* acquire: pairs with the release in kb_space_event_notify */
	*word = a_load_acq(&t->event.word);
	if ((uint32_t)*word == t->taken)
		return gone ? gone : EAGAIN;
	t->taken = (uint32_t)*word;
	if (value)
		*value = a_load_rlx(&t->event.value);
	return 0;
}

int kb_space_event_wait(kb_space_event_t *event, uint64_t *value, uint64_t deadline)
{
	struct kbi_space_hold *h = (struct kbi_space_hold *)event;
	struct kbi_space_thing *t = h->t;
	unsigned tries = 0;
	uint64_t word;
	int e, late = deadline == 0;

	while ((e = kbi_space_event_take(t, value, &word)) == EAGAIN) {
		if (late || kbi_space_queue_is_late(tries++, deadline))
			return ETIMEDOUT;
		late = kbi_space_note_wait(h->s, &t->event.word, &t->how, word, deadline) == ETIMEDOUT;
	}
	return e;
}

int kb_space_event_close(kb_space_event_t *event, unsigned ends)
{
	return kbi_space_thing_leave((struct kbi_space_hold *)event, ends);
}
