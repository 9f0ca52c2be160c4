/* os/libseccomp.h - libc's system calls taken over without writing to its code, on kernels without Syscall User Dispatch:
 * a seccomp filter has the kernel raise SIGSYS for those that are made otherwise, unless the library's own code makes them,
 * and the handler sends each to a stub of os/libstub. Children and what they execute have a filter for good. So only
 * virtual processors get it, and who makes the program's children has none (core/body_birth). x86-64 only.
 * Callers: os/libway. */
#ifndef KBI_LIBSECCOMP_H
#define KBI_LIBSECCOMP_H

#include "os/libsite.h"

/* As kbi_libsite_replace, for those that say so afterwards: the caller's own calls are as they were. */
int kbi_libseccomp_begin(kbi_libsite_call *to, const char **why);
/* The calling process's, from now on for ever, unless it is the child of one that has it. */
void kbi_libseccomp_here(void);
/* In a process that has it not: what the program wants done about SIGSYS. */
void kbi_libseccomp_undo(void);

#endif
