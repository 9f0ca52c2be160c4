/* os/libcall_chosen.h - where virtual processors are processes: maps of files that choose themselves where they are mapped,
 * as rings of io_uring.
 * Caller: os/libcall_map. */
#ifndef KBI_LIBCALL_CHOSEN_H
#define KBI_LIBCALL_CHOSEN_H

#include "base/base.h"

/* mmap in every process, at the same place. It, or -errno: no process has it. */
long kbi_libcall_chosen_map(size_t bytes, int protection, int flags, int fd, long offset);

#endif
