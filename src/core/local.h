/* core/local.h - thread-specific data. The public kb_key_* are in local.c.
 * Callers: core/thread. */
#ifndef KBI_LOCAL_H
#define KBI_LOCAL_H

#include "core/descriptor.h"

/* Runs the destructors of t's values, called on t at its end. */
KBI_SWITCHES void kbi_local_exit(struct kb_thread *t);

#endif
