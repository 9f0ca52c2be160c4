/* libc/intercept_patch.h - replaces the system call instructions of libc and the loader by jumps to
 * code of ours, because virtual processors that are processes need some calls made in another way
 * (libc/emulate). liburing maps its rings by system call instructions of its own: it is treated as
 * a part of libc if it is loaded by then. x86-64 only.
 * Callers: libc/intercept, libc/intercept_sud, libc/intercept_seccomp, posix/libwait. Call once,
 * before there is another process or kernel thread; no switch. */
#ifndef KBI_INTERCEPT_PATCH_H
#define KBI_INTERCEPT_PATCH_H

#include "libc/intercept_patch_put.h"

enum { KBI_INTERCEPT_PATCH_NAMED = 8 };

struct kbi_intercept_counts {
	unsigned seen;     /* system call instructions */
	unsigned replaced;
	/* a breakpoint replaces the call, because the code around it was not understood */
	unsigned trapped;
	/* left as they were for that reason, although wanted or perhaps wanted; the first of them: */
	unsigned passed;
	struct kbi_intercept_passed {
		uintptr_t at;       /* address in the module */
		const char *module; /* path of the module */
		int nr;             /* -1: not known */
	} first[KBI_INTERCEPT_PATCH_NAMED];
	/* of the passed: how many do more than to change a signal mask, and the first of these */
	unsigned grave;
	struct kbi_intercept_passed first_grave;
	unsigned children; /* of the passed: how many make processes */
};

/* Finds the code of libc and the loader; false: not found. The second tells whether an address lies
 * in it. */
bool kbi_intercept_patch_find(void);
bool kbi_intercept_patch_is_libcs(uintptr_t at);
/* Call before kbi_intercept_patch_replace, by the thread that wants the replacement: it may be in a
 * library's constructor and hold the loader's lock, and the thread that replaces has another tid
 * for the loader. */
void kbi_intercept_patch_prepare(void);
/* Replaces futex calls only, where virtual processors are kernel threads: operations that are
 * private to the process go to `call`, the rest to the kernel as before. No breakpoints are set.
 * Either all possible futex calls are replaced, except those in `barrier` (pthread_barrier_wait),
 * or none is: a waiter in replaced code is not found by a wake-up in code that is not replaced. The
 * process has no other kernel thread. Returns 0; or ENOTSUP, nothing has been changed, *why tells
 * the reason. */
int kbi_intercept_patch_replace_futex(kbi_intercept_call *call, const void *barrier,
	struct kbi_intercept_counts *c, const char **why);
/* Replaces the wanted calls. pid: getpid's answer. Returns 0; or ENOTSUP, nothing has been changed,
 * *why tells the reason. */
int kbi_intercept_patch_replace(kbi_intercept_call *call, int pid, struct kbi_intercept_counts *c,
	const char **why);
/* In a child of fork: restores libc's code, in this process. */
void kbi_intercept_patch_undo(void);

#endif
