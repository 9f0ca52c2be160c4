/* space/event.h - what select needs of events. */
#ifndef KBI_SPACE_EVENT_H
#define KBI_SPACE_EVENT_H

#include "space/thing.h"

/* Takes a notification if there is one. 0, EAGAIN, EPIPE, EOWNERDEAD. The word as it was looked at. */
int kbi_space_event_take(struct kbi_space_thing *t, uint64_t *value, uint64_t *word);

#endif
