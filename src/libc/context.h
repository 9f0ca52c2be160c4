/* libc/context.h - questions of a signal handler about the context that it has interrupted.
 * Callers: libc, mem/heap_door, core, posix. Runs in handlers. */
#ifndef KBI_CONTEXT_H
#define KBI_CONTEXT_H

#include <time.h>

#include "base/base.h"

enum { KBI_CONTEXT_REGISTERS = 32 };

/* Returns the address of the interrupted instruction; 0: the layout of this machine's context is
 * unknown. */
uintptr_t kbi_context_at(const void *ucontext);
/* Learns where libc, the loader and similar libraries lie. Call once, before
 * kbi_context_may_leave. */
void kbi_context_learn(void);
/* Declares a range of code that counts as libc's, for libc/intercept_patch and libc/intercept_stub.
 * There is a single range. */
void kbi_context_is_libcs(uintptr_t low, size_t size);
/* Declares that a context interrupted at `pc`, right behind a system call of ours, stands for a
 * context behind a call of libc's: at the address on the stack, with a stack pointer `lowered`
 * bytes higher. */
void kbi_context_stands_for(uintptr_t pc, unsigned lowered);
/* Returns true if a thread may be switched away at this address: it is not in the library, libc,
 * the loader or a sanitizer. */
bool kbi_context_may_leave(uintptr_t at);

/* If the context is right behind a system call in a function that then only returns, returns its
 * return address. Returns 0 otherwise, or if this machine's code is unknown. The thread holds no
 * lock there. */
uintptr_t kbi_context_returns_to(const void *ucontext);
/* Returns the return address for a context inside a function for strings or memory, such as memset
 * and strlen, at any instruction; else 0. */
uintptr_t kbi_context_leaf_returns_to(const void *ucontext);
/* Returns the return address for a context inside a function that has a stack frame, such as strstr
 * and regexec, or inside its callees; else 0. Call kbi_context_frames_learn once before, like
 * kbi_context_learn. */
uintptr_t kbi_context_known_returns_to(const void *ucontext);
void kbi_context_frames_learn(void);
/* For a context inside any function of libc or of our allocator: returns the place on the stack
 * that holds its return address, which leads to code where a thread may be left. Returns NULL if
 * unknown, or if the function uses its return address for more than to return. x86-64, after
 * kbi_context_frames_learn. */
uintptr_t *kbi_context_slot(const void *ucontext);
/* Returns true if a call instruction stands in front of that address. x86-64. */
bool kbi_context_follows_call(uintptr_t at);

/* The place where a thread was interrupted, and the contents of its registers. */
struct kbi_context_place {
	uintptr_t pc, sp;
	uint64_t r[KBI_CONTEXT_REGISTERS];
};
void kbi_context_place(const void *ucontext, struct kbi_context_place *p);
/* Returns true if the time between a and b brought no progress: both are within the same few
 * instructions, with the same values except for a counter and a loaded value. Returns false if the
 * layout of the registers is unknown. */
bool kbi_context_is_near(const struct kbi_context_place *a, const struct kbi_context_place *b);

/* Makes the handler return to fn(arg), which never returns, on the stack below `top`, with the
 * floating-point stack empty, in place of the interrupted instruction. kbi_context_can_go returns
 * true if this machine supports it. */
bool kbi_context_can_go(void);
void kbi_context_go(void *ucontext, void (*fn)(void *), void *arg, void *top);
/* Returns true if the context was on the alternate signal stack: inside another handler. */
bool kbi_context_is_on_signal_stack(const void *ucontext);

/* A system call in which a kernel thread was found. Or an instruction at which a kernel thread
 * sleeps until the page that it accesses is provided (userfaultfd); after a signal the kernel
 * thread executes the instruction again. */
enum { KBI_CONTEXT_NO_CALL = -1, KBI_CONTEXT_FAULT = -2 };
struct kbi_context_call {
	int64_t nr;   /* number of the call, or KBI_CONTEXT_NO_CALL, KBI_CONTEXT_FAULT */
	uint64_t arg; /* the first argument */
	uint64_t sp, pc;
};
/* Asks the kernel for the call that kernel thread tid is in. Of libc it calls string functions
 * only. */
void kbi_context_find_call(int tid, struct kbi_context_call *c);
/* Returns true if the signal has interrupted this call: the kernel will make it again, or has ended
 * it with EINTR. */
bool kbi_context_is_in_call(const void *ucontext, const struct kbi_context_call *c);
/* Makes the call again in any case, unless a handler of the program's runs first. */
void kbi_context_make_again(void *ucontext, const struct kbi_context_call *c);
/* Notes a call and its instruction for kbi_context_make_any_again. Ignores calls of negative
 * number. A single thread notes calls. x86-64. */
void kbi_context_note_call(const struct kbi_context_call *c);
/* Makes an unknown call again if the signal has ended a call and a noted call by the same
 * instruction identifies it. x86-64. */
void kbi_context_make_any_again(void *ucontext);
/* Tells that a handler of the program's has run on the interrupted context. A call that the signal
 * ended with EINTR, or that was about to be made again, is not made again: the program must see
 * EINTR. x86-64. */
void kbi_context_handled(void *ucontext);
/* Returns true if the context has just called sched_yield by a recognised instruction sequence.
 * x86-64. */
bool kbi_context_has_yielded(const void *ucontext);
/* Makes a call again that is interrupted often and must still end in time: the rest of its timeout
 * is kept from one interruption to the next. Each kernel thread has a record. */
struct kbi_context_rest {
	uint64_t deadline; /* ns of CLOCK_MONOTONIC */
	struct timespec left;
};
void kbi_context_go_on(void *ucontext, const struct kbi_context_call *c,
	struct kbi_context_rest *r);

/* Returns true if the address is in the code of the library (or program) that this unit is linked
 * into. */
bool kbi_context_is_ours(uintptr_t at);
/* Returns whose code an address is. All code is the program's unless it is libc's (the loader's, a
 * sanitizer's ...) or ours, even if the library is linked into the program. Call after
 * kbi_context_learn. kbi_context_knows_code returns false in a program with libc linked in, where
 * code cannot be told apart. */
enum kbi_context_code { KBI_CODE_PROGRAM, KBI_CODE_LIBC, KBI_CODE_OURS };
bool kbi_context_knows_code(void);
enum kbi_context_code kbi_context_code(uintptr_t at);
/* Returns the range that holds the library's code and no other code; low 0: unknown. */
void kbi_context_library(uintptr_t *low, size_t *size);
/* Makes the code of another library, given by its ELF header, count as ours. At most one library;
 * before handlers run. */
void kbi_context_add(const void *ehdr);
const void *kbi_context_added(void);
/* Returns the range of the added library's code; low 0: there is none. */
void kbi_context_added_code(uintptr_t *low, size_t *size);

#endif
