/* os/context.h - what a signal handler may ask of the context it has interrupted.
 * Callers: core, posix. Runs in handlers. */
#ifndef KBI_CONTEXT_H
#define KBI_CONTEXT_H

#include "base/base.h"

enum { KBI_CONTEXT_REGISTERS = 32 };

/* The interrupted instruction's address; 0: this machine's layout is not known here. */
uintptr_t kbi_context_at(const void *ucontext);
/* Once, before may_leave: where libc, the loader and the like lie. */
void kbi_context_learn(void);
/* May a thread be switched away at this address: it is not in the library, in libc, the loader, a sanitizer. */
bool kbi_context_may_leave(uintptr_t at);

/* Where a thread was interrupted, and with what in its registers. */
struct kbi_context_place {
	uintptr_t pc, sp;
	uint64_t r[KBI_CONTEXT_REGISTERS];
};
void kbi_context_place(const void *ucontext, struct kbi_context_place *p);
/* Nothing has come of the time between: the same few instructions, the same values but for a counter and what it has
 * loaded. False where the registers' layout is not known. */
bool kbi_context_is_near(const struct kbi_context_place *a, const struct kbi_context_place *b);

/* The handler returns to fn(arg), which never returns, on the stack below `top` with the floating-point stack empty, and
 * not to the interrupted instruction. */
bool kbi_context_can_go(void);
void kbi_context_go(void *ucontext, void (*fn)(void *), void *arg, void *top);
/* It was on the alternate signal stack: in another handler. */
bool kbi_context_is_on_signal_stack(const void *ucontext);

/* A system call that a kernel thread was found in. */
struct kbi_context_call {
	int64_t nr;
	uint64_t arg; /* the first one */
	uint64_t sp, pc;
};
/* Has the signal interrupted this call: the kernel will make it again, or has ended it with EINTR? */
bool kbi_context_is_in_call(const void *ucontext, const struct kbi_context_call *c);
/* It is made again in any case. */
void kbi_context_make_again(void *ucontext, const struct kbi_context_call *c);

/* Is the address in the code of the library (or program) that this is linked into? */
bool kbi_context_is_ours(uintptr_t at);
/* Code that stands in for libc's (os/libsite). Once, before there are other processes. */
void kbi_context_libcs(const void *from, size_t bytes);
/* The same, and no part of a program that it is linked into. */
bool kbi_context_is_library(uintptr_t at);
/* In the library, in libc, the loader, a sanitizer; or it cannot be known (a program with libc in it). */
bool kbi_context_is_delicate(uintptr_t at);
/* Another library's code is to count as ours: its ELF header. One; before handlers run. */
void kbi_context_add(const void *ehdr);
const void *kbi_context_added(void);

#endif
