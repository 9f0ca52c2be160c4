/* libc/emulate_private.h - memory that each process has for itself, where virtual processors are
 * processes. Code and constants that were not writable when the processes were made stay private,
 * and so do such maps of files later on. Before they become writable they become memory of the
 * space.
 * Caller: libc/emulate_map. No switch. */
#ifndef KBI_EMULATE_PRIVATE_H
#define KBI_EMULATE_PRIVATE_H

#include "base/base.h"

/* Makes mprotect in every process, on whole pages. Private memory there that becomes writable is
 * the same in all processes from then on. Returns 0 or -errno. */
long kbi_emulate_private_protect(uintptr_t at, size_t bytes, int protection);

#endif
