/* space/chan.h - the part of channels that select needs.
 * Callers: space/select, space/chan.c. Never switches. */
#ifndef KBI_SPACE_CHAN_H
#define KBI_SPACE_CHAN_H

#include "space/thing.h"

/* Sets up an operation on a channel. queue: 0 receives, 1 sends. */
void kbi_space_chan_op(struct kbi_space_op *op, struct kbi_space_hold *h, unsigned queue,
	void *element);
/* Calls the next waiter, because a waiter that was woken for the channel did a
 * different case. Under the lock. */
void kbi_space_chan_renew(struct kbi_space_op *op);

#endif
