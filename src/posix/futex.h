/* posix/futex.h - futex system calls. The unit's other entry is the program's: syscall(). Caller:
 * posix/thread. Waits may switch. */
#ifndef KBI_FUTEX_H
#define KBI_FUTEX_H

#include "posix/posix.h"

/* Replaces a futex instruction of a module (libc/intercept_module): like syscall(SYS_futex, ...),
 * but returns -errno. */
KBI_SWITCHES long kbi_futex_by_instruction(long nr, long a[6], const uintptr_t *frame);

#endif
