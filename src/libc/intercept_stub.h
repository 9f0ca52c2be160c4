/* libc/intercept_stub.h - code that replaces a system call instruction of libc's. A handler returns
 * into it, so that the call is made where the interrupted code would have made it: on its stack and
 * outside of the handler. x86-64 only. On entry all registers are as for the call, but: rcx is the
 * address behind the instruction, r11 (kbi_intercept_stub_call only) the kbi_intercept_call.
 * Registers that a system call keeps are kept.
 * Callers: libc/intercept_patch, libc/intercept_patch_put, libc/intercept_sud,
 * libc/intercept_seccomp, libc/intercept_cancel, core/process_birth, core/process. */
#ifndef KBI_INTERCEPT_STUB_H
#define KBI_INTERCEPT_STUB_H

#include "base/atom.h"

#if defined(__x86_64__)

/* bytes by which kbi_intercept_stub_plain lowers the stack pointer for its call; the address behind
 * the instruction lies on top */
enum { KBI_INTERCEPT_STUB_LOWERED = 136 };

/* Calls C, the function in r11. A stub of libc/intercept_patch calls `enter` itself, below the red
 * zone. */
KBI_HIDDEN void kbi_intercept_stub_call(void);
KBI_HIDDEN void kbi_intercept_stub_enter(void);
/* Makes the kernel's call, which returns to kbi_intercept_stub_behind; the third makes it by int
 * 0x80. */
KBI_HIDDEN void kbi_intercept_stub_plain(void);
extern KBI_HIDDEN const char kbi_intercept_stub_behind[];
KBI_HIDDEN void kbi_intercept_stub_old(void);
/* Makes clone with a stack for the child. `thread`: for a kernel thread, with
 * kbi_intercept_stub_own excepted from dispatch. */
KBI_HIDDEN void kbi_intercept_stub_clone(void);
KBI_HIDDEN void kbi_intercept_stub_thread(void);
/* Makes clone with CLONE_VM and no stack; r9 is lost. */
KBI_HIDDEN void kbi_intercept_stub_shared(void);

/* Calls kbi_intercept_stub_child (in r11). The caller's registers are kept outside of its stack
 * (below). */
KBI_HIDDEN void kbi_intercept_stub_apart(void);
/* Returns from a handler: rt_sigreturn. */
KBI_HIDDEN void kbi_intercept_stub_return(void);

/* The runtime's own code: `size` bytes from low on. */
struct kbi_intercept_stub_range {
	uintptr_t low, size;
};
extern KBI_HIDDEN struct kbi_intercept_stub_range kbi_intercept_stub_own;

/* Makes a thread that is interrupted in a stub count as interrupted in libc, from now on. */
void kbi_intercept_stub_are_used(void);

#endif

/* A call that makes a child for which the caller waits, or that another kernel thread makes
 * (core/process_birth): kbi_intercept_stub_child returns such a struct, in memory that all
 * processes share, or -errno. The caller's registers are kept in it. makes() runs on the stack
 * below `top`, and its result is the call's. */
struct kbi_intercept_stub_call_apart {
	uint64_t pc, sp, kept[6], argument[6];
	uint64_t mask;            /* signal mask with which the caller goes on */
	void *top;
	a32 used;                 /* 1 until the caller has gone on */
	/* of the child, while the child uses this struct; see core/process_birth */
	a32 tid;
	long (*makes)(struct kbi_intercept_stub_call_apart *c);
	char fp[512] __attribute__((aligned(16)));
};
/* Set before there are processes. flags: the flags of clone where its remaining arguments do not
 * matter, as for vfork; 0: the call is clone with the arguments in arg. */
extern KBI_HIDDEN long (*kbi_intercept_stub_child)(long flags, long arg[6]);
/* Goes on where the call was made, with this answer. Any kernel thread may call; *over becomes 0
 * when c is needed no more. */
KBI_HIDDEN void kbi_intercept_stub_go(struct kbi_intercept_stub_call_apart *c, long answer,
	a32 *over) KBI_NORETURN;

/* Makes clone by the library's own code: the child runs fn(arg), which never returns, on the stack
 * below `top`. Returns the child's number, also written to *number for CLONE_PARENT_SETTID; or
 * -errno. */
KBI_HIDDEN long kbi_intercept_stub_process(int (*fn)(void *), void *top, long flags, void *arg,
	void *number);

#endif
