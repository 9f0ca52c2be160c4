/* sync/once.h - the two halves of once, for callers whose function may leave other than by its end.
 * Callers: sync/once.c, posix (cancellation and exceptions out of the function: abort). */
#ifndef KBI_ONCE_H
#define KBI_ONCE_H

#include <kochab/sync.h>

#include "base/base.h"

/* Begins. True: the caller must run the function and then call done or abort. False: the function
 * has been run, and all its effects are visible. Waits while another thread runs the function. */
KBI_SWITCHES bool kbi_once_begin(kb_once_t *o);
void kbi_once_done(kb_once_t *o);
/* Undoes the begin: a waiting thread begins. */
void kbi_once_abort(kb_once_t *o);
/* Resets the word in the child of fork: the thread that was running the function does not exist. */
void kbi_once_orphan(kb_once_t *o);

#endif
