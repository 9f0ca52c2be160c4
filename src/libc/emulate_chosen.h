/* libc/emulate_chosen.h - maps of files that choose their address themselves, such as rings of
 * io_uring, where virtual processors are processes.
 * Caller: libc/emulate_map. No switch. */
#ifndef KBI_EMULATE_CHOSEN_H
#define KBI_EMULATE_CHOSEN_H

#include "base/base.h"

/* Makes mmap in every process, at the same address. Returns the address, or -errno: no process has
 * the map. */
long kbi_emulate_chosen_map(size_t bytes, int protection, int flags, int fd, long offset);

#endif
