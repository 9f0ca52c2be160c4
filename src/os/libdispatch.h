/* os/libdispatch.h - libc's system calls taken over without writing to its code: the kernel raises SIGSYS for all that are
 * not made by the runtime's own code (Syscall User Dispatch, Linux 5.11), and the handler sends each to a stub of
 * os/libstub. It is a kernel thread's, which its children and what it executes have not: each asks for it. x86-64 only.
 * Callers: os/libway. */
#ifndef KBI_LIBDISPATCH_H
#define KBI_LIBDISPATCH_H

#include "os/libsite.h"

/* As kbi_libsite_replace, for the calling kernel thread and those that it makes in its process. */
int kbi_libdispatch_begin(kbi_libsite_call *to, const char **why);
/* The calling kernel thread's, from now on, and no more. */
void kbi_libdispatch_here(void);
void kbi_libdispatch_not_here(void);
/* Nobody's any more, in this process: the caller's, and what the program wants done about SIGSYS. */
void kbi_libdispatch_undo(void);

#endif
