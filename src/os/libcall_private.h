/* os/libcall_private.h - where virtual processors are processes: memory that each of them has for itself. Code and
 * constants that nobody could write to when the processes were made are left so, and so are such maps of files later on.
 * Before they may be written to they become memory of the space.
 * Caller: os/libcall_map. */
#ifndef KBI_LIBCALL_PRIVATE_H
#define KBI_LIBCALL_PRIVATE_H

#include "base/base.h"

/* mprotect in every process, whole pages. What each has for itself there, and may write to then, is the same in all from
 * then on. */
long kbi_libcall_private_protect(uintptr_t at, size_t bytes, int protection);

#endif
