/* os/libsite.h - where libc and the loader make system calls: their instructions are replaced by jumps to code of ours,
 * because virtual processors that are processes need some calls made otherwise (os/libcall). So are liburing's, which maps
 * its rings by instructions of its own: it is taken for a part of libc if it is loaded by then. x86-64 only.
 * Callers: os/libcall, the command (a count). Once, before there is another process. */
#ifndef KBI_LIBSITE_H
#define KBI_LIBSITE_H

#include "os/libsite_put.h"

enum { KBI_LIBSITE_NAMED = 8 };

struct kbi_libsite_counts {
	unsigned seen;     /* system call instructions */
	unsigned replaced;
	unsigned trapped;  /* those whose surroundings were not understood: a breakpoint stands there */
	unsigned passed;   /* the same, left as they were, though they are wanted, or may be; the first of them: */
	struct kbi_libsite_passed {
		uintptr_t at;       /* in the module, */
		const char *module; /* whose path this is */
		int nr;             /* -1: not known */
	} first[KBI_LIBSITE_NAMED];
	unsigned grave;    /* of these, how many do more than to change a mask of signals; and the first of them */
	struct kbi_libsite_passed first_grave;
	unsigned children; /* of these, how many make processes */
};

/* Where is the code of libc and the loader? False: not known. And is that a part of it? */
bool kbi_libsite_find(void);
bool kbi_libsite_is_libcs(uintptr_t at);
/* Before kbi_libsite_replace, by the thread that wants it done: who starts us may be in a constructor of a library, with
 * the loader's lock, and the one that replaces has another tid for the loader. */
void kbi_libsite_prepare(void);
/* Replaces futex calls only, where virtual processors are kernel threads: operations that are private to the process go to
 * `call`, others to the kernel as before. No breakpoints are set. Either all that may be such calls are replaced, but for
 * those of `barrier`, pthread_barrier_wait, or none is: a wait by code that is replaced is not found by a wake-up that is
 * not. The process has no other kernel thread. 0; or ENOTSUP, nothing has been changed: *why. */
int kbi_libsite_replace_futex(kbi_libsite_call *call, const void *barrier, struct kbi_libsite_counts *c, const char **why);
/* Replaces them. pid: what getpid is to say. 0; or ENOTSUP, nothing has been changed: *why. */
int kbi_libsite_replace(kbi_libsite_call *call, int pid, struct kbi_libsite_counts *c, const char **why);
/* In a child of fork: libc's code is as it was, in this process. */
void kbi_libsite_undo(void);

#endif
