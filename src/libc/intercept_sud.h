/* libc/intercept_sud.h - intercepts libc's system calls without writing to libc's code. The kernel
 * raises SIGSYS for all calls that are not made by the runtime's own code (Syscall User Dispatch,
 * Linux 5.11), and the handler sends each call to a stub of libc/intercept_stub. Dispatch is set
 * for a kernel thread; its children and programs that it executes do not inherit the setting: each
 * asks for it. x86-64 only.
 * Callers: libc/intercept. */
#ifndef KBI_INTERCEPT_SUD_H
#define KBI_INTERCEPT_SUD_H

#include "libc/intercept_patch.h"

/* Begins, as kbi_intercept_patch_replace, for the calling kernel thread and the kernel threads that
 * it makes in its process. */
int kbi_intercept_sud_begin(kbi_intercept_call *to, const char **why);
/* Turns dispatch on, and off, for the calling kernel thread. */
void kbi_intercept_sud_here(void);
void kbi_intercept_sud_not_here(void);
/* Ends the interception in this process: turns dispatch off for the caller and gives the program's
 * action for SIGSYS back to the kernel. */
void kbi_intercept_sud_undo(void);

#endif
