/* space/chan.h - what select needs of channels. */
#ifndef KBI_SPACE_CHAN_H
#define KBI_SPACE_CHAN_H

#include "space/thing.h"

/* The operation on a channel: op->arg is the element. queue: 0 receives, 1 sends. */
void kbi_space_chan_op(struct kbi_space_op *op, struct kbi_space_hold *h, unsigned queue, void *element);
/* Under the lock: somebody who was woken for it did something else: the next one is called. */
void kbi_space_chan_renew(struct kbi_space_op *op);

#endif
