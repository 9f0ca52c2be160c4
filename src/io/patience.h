/* io/patience.h - how long a call of the native I/O interface waits: until its deadline, or until
 * its thread is told to stop.
 * Callers: this room. */
#ifndef KBI_PATIENCE_H
#define KBI_PATIENCE_H

#include "sync/waitq.h"

/* Returns a wait limit for kbi_ready_wait and the like: ECANCELED after
 * kb_io_cancel, once for each. */
struct kbi_until kbi_patience(uint64_t deadline);

#endif
