/* sync/once.h - the two halves of once, for callers whose function may leave by other ways than its end.
 * Callers: sync/once.c, posix (cancellation and exceptions out of the function: abort). */
#ifndef KBI_ONCE_H
#define KBI_ONCE_H

#include <kochab/sync.h>

#include "base/base.h"

/* True: the caller is the one to run the function and must call done or abort after it. False: it has been
 * run, and all it did is visible. Waits while another thread runs it. */
KBI_SWITCHES bool kbi_once_begin(kb_once_t *o);
void kbi_once_done(kb_once_t *o);
/* As if it had not been begun: one of those who wait begins. */
void kbi_once_abort(kb_once_t *o);
/* In the child of fork: who was running it is not there. */
void kbi_once_orphan(kb_once_t *o);

#endif
