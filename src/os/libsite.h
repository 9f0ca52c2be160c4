/* os/libsite.h - where libc and the loader make system calls: their instructions are replaced by jumps to code of ours,
 * because virtual processors that are processes need some calls made otherwise (os/libcall). x86-64 only.
 * Callers: os/libcall, the command (a count). Once, before there is another process. */
#ifndef KBI_LIBSITE_H
#define KBI_LIBSITE_H

#include "base/base.h"

struct kbi_libsite_counts {
	unsigned seen;     /* system call instructions */
	unsigned replaced;
	unsigned trapped;  /* those whose surroundings were not understood: a breakpoint stands there */
};

/* Where each replaced call goes: number, and six arguments that it may change. On the caller's stack. */
typedef long kbi_libsite_call(long nr, long arg[6]);

/* Counts only. NULL, or why it cannot be done here. */
const char *kbi_libsite_usable(struct kbi_libsite_counts *c);
/* A signal whose handler is in use here, and may not be blocked; 0: none. */
int kbi_libsite_signal(void);
/* The program's action for it, which is taken where the signal is not ours: as rt_sigaction, of the kernel's structs. */
long kbi_libsite_action(const void *new, void *old);
/* Before kbi_libsite_replace, by the thread that wants it done: who starts us may be in a constructor of a library, with
 * the loader's lock, and the one that replaces has another tid for the loader. */
void kbi_libsite_prepare(void);
/* Replaces them. pid: what getpid is to say. 0; or ENOTSUP, nothing has been changed: *why. */
int kbi_libsite_replace(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why);
/* In a child of fork: libc's code is as it was, in this process. */
void kbi_libsite_undo(void);

#endif
