/* sync/event.h - taking an event without waiting, for kb_select. An event is a cell (core/cell).
 * Callers: sync/select, sync/event.c. Runs on the owner's stack; never switches. */
#ifndef KBI_EVENT_H
#define KBI_EVENT_H

#include <kochab/sync.h>

#include "core/cell.h"
#include "core/descriptor.h"
#include "core/wait.h"

_Static_assert(sizeof(struct kbi_cell) <= sizeof(kb_event_t), "an event is a cell");
_Static_assert(offsetof(struct kbi_cell, value) == offsetof(kb_event_t, value),
	"an event is a cell");
_Static_assert(offsetof(struct kbi_cell, far) == offsetof(kb_event_t, far), "an event is a cell");

static inline struct kbi_cell *kbi_event_cell(kb_event_t *ev)
{
	return (struct kbi_cell *)ev;
}

/* Returns whether a notification is there. Only for the owner. */
static inline bool kbi_event_pending(kb_event_t *ev, struct kbi_task *self)
{
	struct kbi_cell *c = kbi_event_cell(ev);

	if (kbi_task_is(self, KBI_TASK_MAIL) && kbi_thread_of(self)->got == c)
		return true;
	/* acquire: pairs with the release in kbi_cell_put */
	return a_load_acq(&c->far) & KBI_CELL_FULL;
}

/* Takes the far message, if it is complete, and stores its value: it is newer than *value. Called
 * when a far message is there or on its way in. */
void kbi_event_take_far(struct kbi_cell *c, struct kbi_task *self, uint64_t *value);

/* Takes the pending notification and returns its message. Only for the
 * owner; the message is there. */
static inline uint64_t kbi_event_take(kb_event_t *ev, struct kbi_task *self)
{
	struct kbi_cell *c = kbi_event_cell(ev);
	uint64_t value = 0;

	if (kbi_task_is(self, KBI_TASK_MAIL) && kbi_thread_of(self)->got == c) {
		value = kbi_thread_of(self)->got_value;
		/* Reads the value first: once the bit is cleared, the tick may put the next message there,
		 * which then would be taken twice. */
		kbi_compiler_barrier();
		kbi_task_clear(self, KBI_TASK_MAIL);
	}
	if (kbi_unlikely(a_load_rlx(&c->far)))
		kbi_event_take_far(c, self, &value);
	return value;
}

#endif
