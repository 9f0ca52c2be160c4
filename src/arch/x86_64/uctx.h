/* arch/x86_64/uctx.h - libc's getcontext family without its system calls, and the parts of
 * ucontext_t that the family uses.
 * Callers: posix/ucontext. Contract in arch/arch.h. */
#ifndef KBI_ARCH_UCTX_H
#define KBI_ARCH_UCTX_H

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "base/base.h"

#define KBI_HAVE_UCONTEXT 1
enum {
	KBI_UC_FPMEM = 424,
	KBI_UC_FP_BYTES = 28, /* the part that is loaded */
	KBI_UC_RED = 128,     /* red zone of the interrupted code, below its stack pointer */
	KBI_UC_ARGUMENTS = 6,
};
_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs) == 40, "as it is below");
_Static_assert(offsetof(ucontext_t, uc_mcontext.fpregs) == 224, "as it is below");
_Static_assert(offsetof(ucontext_t, __fpregs_mem) == KBI_UC_FPMEM, "as it is below");
_Static_assert(REG_R8 == 0 && REG_RDI == 8 && REG_RBP == 10 && REG_RSP == 15 && REG_RIP == 16,
	"as it is below");

#define KBI_UC_FUNCTION(name, hidden) \
	"\t.p2align 4\n\t.globl\t" #name "\n" hidden "\t.type\t" #name ", @function\n" #name \
		":\n\t.cfi_startproc\n\tendbr64\n"
#define KBI_UC_END(name) "\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n"
#define KBI_UC_SAVE \
	"\tmovq %r8, 40(%rdi)\n\tmovq %r9, 48(%rdi)\n\tmovq %r12, 72(%rdi)\n\tmovq %r13, 80(%rdi)\n" \
	"\tmovq %r14, 88(%rdi)\n\tmovq %r15, 96(%rdi)\n\tmovq %rdi, 104(%rdi)\n" \
	"\tmovq %rsi, 112(%rdi)\n" \
	"\tmovq %rbp, 120(%rdi)\n\tmovq %rbx, 128(%rdi)\n\tmovq %rdx, 136(%rdi)\n" \
	"\tmovq %rcx, 152(%rdi)\n" \
	"\tleaq 8(%rsp), %rax\n\tmovq %rax, 160(%rdi)\n\tmovq (%rsp), %rax\n\tmovq %rax, 168(%rdi)\n" \
	"\tleaq 424(%rdi), %rax\n\tmovq %rax, 224(%rdi)\n\tfnstenv (%rax)\n\tfldcw (%rax)\n" \
	"\tstmxcsr 24(%rax)\n"
#define KBI_UC_LOAD \
	"\tmovq 224(%rdi), %rax\n\tfldcw (%rax)\n\tldmxcsr 24(%rax)\n" \
	"\tmovq 40(%rdi), %r8\n\tmovq 48(%rdi), %r9\n\tmovq 72(%rdi), %r12\n\tmovq 80(%rdi), %r13\n" \
	"\tmovq 88(%rdi), %r14\n\tmovq 96(%rdi), %r15\n\tmovq 112(%rdi), %rsi\n" \
	"\tmovq 120(%rdi), %rbp\n" \
	"\tmovq 128(%rdi), %rbx\n\tmovq 136(%rdi), %rdx\n\tmovq 152(%rdi), %rcx\n" \
	"\tmovq 160(%rdi), %rax\n" \
	"\tmovq 168(%rdi), %r11\n\tmovq 104(%rdi), %rdi\n\tmovq %rax, %rsp\n\txorl %eax, %eax\n" \
	"\tjmp *%r11\n"
/* Unwind rules: the context is the caller of `arrived`. CFA, rbx, rbp, r12 to r15 and rip are in
 * the context. */
#define KBI_UC_FRAME \
	"\t.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6\n\t.cfi_escape 0x10, 3, 3, 0x77, 0x80, 1\n" \
	"\t.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0\n\t.cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0\n" \
	"\t.cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0\n\t.cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0\n" \
	"\t.cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0\n\t.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n"
#define KBI_UC_CALLS(got, swapped, start, ended, go, arrive, arrived) \
	__asm__("\t.text\n" KBI_UC_FUNCTION(getcontext, "") KBI_UC_SAVE "\tjmp " #got "\n" \
		KBI_UC_END(getcontext) \
		KBI_UC_FUNCTION(swapcontext, "") KBI_UC_SAVE "\tjmp " #swapped "\n" \
		KBI_UC_END(swapcontext) \
		KBI_UC_FUNCTION(go, "\t.hidden\t" #go "\n") "\t.cfi_undefined rip\n" \
		KBI_UC_LOAD KBI_UC_END(go) \
		KBI_UC_FUNCTION(arrive, "\t.hidden\t" #arrive "\n") \
		"\t.cfi_signal_frame\n\t.cfi_undefined rip\n" \
		"\tmovq %rdi, %rsp\n" KBI_UC_FRAME "\tcall " #arrived "\n\tmovq %rsp, %rdi\n\tjmp " #go \
		"\n" \
		KBI_UC_END(arrive) \
		"\t.p2align 4\n" KBI_UC_FUNCTION(start, "\t.hidden\t" #start "\n") \
		"\t.cfi_undefined rip\n\tmovq %rbx, %rdi\n\tcall " #ended "\n\thlt\n" KBI_UC_END(start))

static inline bool kbi_uc_is_kernels(const ucontext_t *u)
{
	return u->uc_mcontext.fpregs != &u->__fpregs_mem;
}

static inline ucontext_t *kbi_uc_copy_below(const ucontext_t *u)
{
	uintptr_t sp = (uintptr_t)u->uc_mcontext.gregs[REG_RSP] - KBI_UC_RED;
	ucontext_t *copy = (ucontext_t *)((sp - (KBI_UC_FPMEM + 32)) & -(uintptr_t)64);

	memcpy(copy, u, KBI_UC_FPMEM);
	copy->uc_mcontext.fpregs = (fpregset_t)((uintptr_t)copy + KBI_UC_FPMEM);
	memcpy(copy->uc_mcontext.fpregs, u->uc_mcontext.fpregs, KBI_UC_FP_BYTES);
	return copy;
}

static inline void kbi_uc_begin(ucontext_t *u, void (*fn)(void), void (*start)(void), int n)
{
	uintptr_t top = (uintptr_t)u->uc_stack.ss_sp + u->uc_stack.ss_size;
	size_t more = n > KBI_UC_ARGUMENTS ? (size_t)(n - KBI_UC_ARGUMENTS) : 0;
	uintptr_t *sp = (uintptr_t *)((top - more * sizeof(uintptr_t)) & -(uintptr_t)16) - 1;
	greg_t *g = u->uc_mcontext.gregs;

	sp[0] = (uintptr_t)start;
	g[REG_RIP] = (greg_t)(uintptr_t)fn;
	g[REG_RSP] = (greg_t)(uintptr_t)sp;
	g[REG_RBX] = (greg_t)(uintptr_t)u->uc_link;
	g[REG_RBP] = 0;
}

static inline void kbi_uc_argument(ucontext_t *u, int i, long value)
{
	static const int in[KBI_UC_ARGUMENTS] = { REG_RDI, REG_RSI, REG_RDX, REG_RCX, REG_R8, REG_R9 };

	if (i < KBI_UC_ARGUMENTS)
		u->uc_mcontext.gregs[in[i]] = value;
	else
		((long *)u->uc_mcontext.gregs[REG_RSP])[1 + i - KBI_UC_ARGUMENTS] = value;
}

#endif
