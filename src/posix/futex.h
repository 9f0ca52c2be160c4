/* posix/futex.h - futex system calls. Its other entry is the program's: syscall(). Caller: posix/thread. */
#ifndef KBI_FUTEX_H
#define KBI_FUTEX_H

#include "posix/posix.h"

/* Stands for the instruction (os/ownsite): as syscall(SYS_futex, ...), but that the answer is -errno. */
KBI_SWITCHES long kbi_futex_by_instruction(long nr, long a[6], const uintptr_t *frame);

#endif
