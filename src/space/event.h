/* space/event.h - the part of events that select needs.
 * Callers: space/select, space/event.c. Never switches. */
#ifndef KBI_SPACE_EVENT_H
#define KBI_SPACE_EVENT_H

#include "space/thing.h"

/* Takes a notification if there is one. Returns 0, EAGAIN, EPIPE or EOWNERDEAD. Stores
 * the word as read in *word. */
int kbi_space_event_take(struct kbi_space_thing *t, uint64_t *value, uint64_t *word);

#endif
