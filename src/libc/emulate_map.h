/* libc/emulate_map.h - system calls about memory where virtual processors are processes: when a
 * call returns, the memory is the same in every process.
 * Caller: libc/emulate, libc/emulate_owned. Calls broadcast, os/memory. On the caller's stack; no
 * switch. */
#ifndef KBI_EMULATE_MAP_H
#define KBI_EMULATE_MAP_H

#include "base/base.h"

/* Makes mmap, munmap, mprotect, mremap, madvise, shmat, shmdt. Returns the answer as the kernel's
 * would be. */
long kbi_emulate_memory(long nr, const long arg[6]);
/* Makes the call here and then in all other processes. Returns the answer here. */
long kbi_emulate_broadcast(long nr, long a, long b, long c, long d, long e, long f);

#endif
