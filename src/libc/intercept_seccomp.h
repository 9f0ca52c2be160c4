/* libc/intercept_seccomp.h - intercepts libc's system calls without writing to libc's code, on
 * kernels without Syscall User Dispatch. A seccomp filter makes the kernel raise SIGSYS for the
 * calls that the runtime makes in another way, unless the library's own code makes them; the
 * handler sends each to a stub of libc/intercept_stub. Children, and programs that they execute,
 * keep a filter for ever. So only virtual processors install it, and a process without it makes the
 * program's children (core/process_birth). x86-64 only.
 * Callers: libc/intercept. */
#ifndef KBI_INTERCEPT_SECCOMP_H
#define KBI_INTERCEPT_SECCOMP_H

#include "libc/intercept_patch.h"

/* As kbi_intercept_patch_replace, for processes that call kbi_intercept_seccomp_here afterwards:
 * the caller's own calls are unchanged. */
int kbi_intercept_seccomp_begin(kbi_intercept_call *to, const char **why);
/* Installs the filter in the calling process, for ever; not in the child of a process that has
 * it. */
void kbi_intercept_seccomp_here(void);
/* In a process without the filter: gives the program's action for SIGSYS back to the kernel. */
void kbi_intercept_seccomp_undo(void);

#endif
