/* os/libstub.h - code that stands for a system call instruction of libc's, for handlers to return to: the call is made
 * where the interrupted code would have made it, on its stack and outside of the handler. x86-64 only.
 * All registers are as for the call, but: rcx is the address behind the instruction, r11 (kbi_libstub_call only) the
 * kbi_libsite_call. What a system call keeps is kept.
 * Callers: os/libsite, os/libdispatch, os/libseccomp, core/body_birth, core/body_process. */
#ifndef KBI_LIBSTUB_H
#define KBI_LIBSTUB_H

#include "base/atom.h"

#if defined(__x86_64__)

enum { KBI_LIBSTUB_LOWERED = 136 /* the stack pointer in a call of kbi_libstub_plain, whose address lies on top */ };

/* C: r11. For code that has called it by a stub of its own, too (os/libsite): enter, below the red zone. */
KBI_HIDDEN void kbi_libstub_call(void);
KBI_HIDDEN void kbi_libstub_enter(void);
/* The kernel's, at kbi_libstub_behind when it has answered; by int 0x80. */
KBI_HIDDEN void kbi_libstub_plain(void);
extern KBI_HIDDEN const char kbi_libstub_behind[];
KBI_HIDDEN void kbi_libstub_old(void);
/* clone with a stack for the child; the same of a kernel thread, whose calls kbi_libstub_own excepts from dispatch. */
KBI_HIDDEN void kbi_libstub_clone(void);
KBI_HIDDEN void kbi_libstub_thread(void);
/* clone with CLONE_VM and no stack: r9 is lost. */
KBI_HIDDEN void kbi_libstub_shared(void);

/* r11: kbi_libstub_child. What the caller has in its registers is kept outside of its stack (below). */
KBI_HIDDEN void kbi_libstub_apart(void);
/* Returns from a handler: rt_sigreturn. */
KBI_HIDDEN void kbi_libstub_return(void);

/* The runtime's own code: bytes from low on. */
struct kbi_libstub_range {
	uintptr_t low, size;
};
extern KBI_HIDDEN struct kbi_libstub_range kbi_libstub_own;

/* From now on who is interrupted in one of the stubs is in libc. */
void kbi_libstub_are_used(void);

#endif

/* A call that makes a process that is waited for, or by somebody else (core/body_birth): kbi_libstub_child returns one of
 * these, in memory that all processes have, or -errno. What the caller has in its registers is kept there; makes() runs on
 * the stack below `top`, and its result is the call's. */
struct kbi_libstub_call_apart {
	uint64_t pc, sp, kept[6], argument[6];
	uint64_t mask;            /* of signals: it goes on with that */
	void *top;
	a32 used;                 /* 1 until its caller has gone on */
	a32 tid;                  /* the child's, while that uses it; see core/body_birth */
	long (*makes)(struct kbi_libstub_call_apart *c);
	char fp[512] __attribute__((aligned(16)));
};
/* flags: of clone, whose other arguments do not matter, as vfork has none; 0: it is clone, with these. Set before there are
 * processes. */
extern KBI_HIDDEN long (*kbi_libstub_child)(long flags, long arg[6]);
/* Whoever calls goes on where the call was made, with this answer; *over becomes 0 when it needs c no more. */
KBI_HIDDEN void kbi_libstub_go(struct kbi_libstub_call_apart *c, long answer, a32 *over) KBI_NORETURN;

/* clone by the library's own code: fn(arg), which never returns, on the stack below `top`. Its number, also written to
 * *number for CLONE_PARENT_SETTID; or -errno. */
KBI_HIDDEN long kbi_libstub_process(int (*fn)(void *), void *top, long flags, void *arg, void *number);

#endif
