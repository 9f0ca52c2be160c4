/* os/libcall_map.h - memory of a program whose virtual processors are processes, as its system calls ask for it: the same
 * in every process when the call returns.
 * Caller: os/libcall. Calls everywhere, memory. */
#ifndef KBI_LIBCALL_MAP_H
#define KBI_LIBCALL_MAP_H

#include "base/base.h"

/* mmap, munmap, mprotect, mremap, madvise, shmat, shmdt: what the kernel would answer. */
long kbi_libcall_memory(long nr, const long arg[6]);
/* The call here and then in all other processes. */
long kbi_libcall_everywhere(long nr, long a, long b, long c, long d, long e, long f);

#endif
