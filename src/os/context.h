/* os/context.h - what a signal handler may ask of the context it has interrupted.
 * Callers: core, posix. Runs in handlers. */
#ifndef KBI_CONTEXT_H
#define KBI_CONTEXT_H

#include <time.h>

#include "base/base.h"

enum { KBI_CONTEXT_REGISTERS = 32 };

/* The interrupted instruction's address; 0: this machine's layout is not known here. */
uintptr_t kbi_context_at(const void *ucontext);
/* Once, before may_leave: where libc, the loader and the like lie. */
void kbi_context_learn(void);
/* Other code that counts as libc's: os/libsite's, os/libstub's. One range. */
void kbi_context_is_libcs(uintptr_t low, size_t size);
/* Who is interrupted at `pc`, right behind a system call there, is behind one of libc's: at the address that lies on the
 * stack, whose pointer was so many bytes higher. */
void kbi_context_stands_for(uintptr_t pc, unsigned lowered);
/* May a thread be switched away at this address: it is not in the library, in libc, the loader, a sanitizer. */
bool kbi_context_may_leave(uintptr_t at);

/* Interrupted right behind a system call, in a function that does nothing else but return: where to. 0: not so, or
 * not known on this machine. It holds no lock there. */
uintptr_t kbi_context_returns_to(const void *ucontext);
/* The same inside a function for strings or memory, such as memset and strlen, for as long as that takes. */
uintptr_t kbi_context_leaf_returns_to(const void *ucontext);
/* The same inside one that has a frame on the stack, such as strstr and regexec, or in what it calls. After frames_learn,
 * which is for once, as learn. */
uintptr_t kbi_context_known_returns_to(const void *ucontext);
void kbi_context_frames_learn(void);
/* The same inside any function of libc's or our allocator's: where on the stack is written where to it will return, which
 * is a place where a thread may be left. NULL: not known, or one that does more with it than to return. x86-64, after
 * frames_learn. */
uintptr_t *kbi_context_slot(const void *ucontext);
/* Is there a call in front of that address? x86-64. */
bool kbi_context_follows_call(uintptr_t at);

/* Where a thread was interrupted, and with what in its registers. */
struct kbi_context_place {
	uintptr_t pc, sp;
	uint64_t r[KBI_CONTEXT_REGISTERS];
};
void kbi_context_place(const void *ucontext, struct kbi_context_place *p);
/* Nothing has come of the time between: the same few instructions, the same values but for a counter and what it has
 * loaded. False where the registers' layout is not known. */
bool kbi_context_is_near(const struct kbi_context_place *a, const struct kbi_context_place *b);

/* The handler returns to fn(arg), which never returns, on the stack below `top`, with the floating-point stack empty, and
 * not to the interrupted instruction. can_go: on this machine it can. */
bool kbi_context_can_go(void);
void kbi_context_go(void *ucontext, void (*fn)(void *), void *arg, void *top);
/* It was on the alternate signal stack: in another handler. */
bool kbi_context_is_on_signal_stack(const void *ucontext);

/* A system call that a kernel thread was found in; or an instruction at which it sleeps until somebody brings the page that
 * it touches (userfaultfd), which a signal lets it do once more. */
enum { KBI_CONTEXT_NO_CALL = -1, KBI_CONTEXT_FAULT = -2 };
struct kbi_context_call {
	int64_t nr;   /* or one of these */
	uint64_t arg; /* the first one */
	uint64_t sp, pc;
};
/* The one that kernel thread tid is in, from the kernel. Calls nothing of libc's. */
void kbi_context_find_call(int tid, struct kbi_context_call *c);
/* Has the signal interrupted this call: the kernel will make it again, or has ended it with EINTR? */
bool kbi_context_is_in_call(const void *ucontext, const struct kbi_context_call *c);
/* It is made again in any case, unless a handler of the program's comes first. */
void kbi_context_make_again(void *ucontext, const struct kbi_context_call *c);
/* The same for a call that nobody knows, if the signal has ended one, and other calls by the same instruction, which have
 * been noted, tell which it is. Noted by one thread; a call of number -1 is none. x86-64. */
void kbi_context_note_call(const struct kbi_context_call *c);
void kbi_context_make_any_again(void *ucontext);
/* A handler of the program's has run on what was interrupted: a call that was ended by that with EINTR, or that was about
 * to be made again, is not: the program is to see it. x86-64. */
void kbi_context_handled(void *ucontext);
/* Has it just asked the kernel that others run (sched_yield), by instructions that say so? x86-64. */
bool kbi_context_has_yielded(const void *ucontext);
/* The same for who interrupts a call often, and it shall end in its time all the same: what it has left is remembered from
 * one interruption to the next. One for each kernel thread. */
struct kbi_context_rest {
	uint64_t deadline; /* ns */
	struct timespec left;
};
void kbi_context_go_on(void *ucontext, const struct kbi_context_call *c, struct kbi_context_rest *r);

/* Is the address in the code of the library (or program) that this is linked into? */
bool kbi_context_is_ours(uintptr_t at);
/* Whose code it is. The program's is all that is not libc's (the loader's, a sanitizer's ...) or ours, also where the
 * library is linked into it. Once learnt; knows_code: false in a program with libc in it, where it cannot be told. */
enum kbi_context_code { KBI_CODE_PROGRAM, KBI_CODE_LIBC, KBI_CODE_OURS };
bool kbi_context_knows_code(void);
enum kbi_context_code kbi_context_code(uintptr_t at);
/* Where the library's code lies, and no other is; low 0: not known. */
void kbi_context_library(uintptr_t *low, size_t *size);
/* Another library's code is to count as ours: its ELF header. One; before handlers run. */
void kbi_context_add(const void *ehdr);
const void *kbi_context_added(void);
/* Where that one's code lies; low 0: there is none. */
void kbi_context_added_code(uintptr_t *low, size_t *size);

#endif
