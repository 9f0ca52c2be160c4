/* libc/intercept_stub.c - code that replaces a system call instruction. Contract in
 * intercept_stub.h.
 *
 * A handler cannot push the address behind the instruction, because the stack below belongs to the
 * handler: the address comes in rcx, which a system call loses anyway. A stub first skips the red
 * zone, then keeps the address on the stack. Where parent and child share the stack, or the child
 * has a stack of its own, the address is kept elsewhere. No stub returns by ret to an address that
 * was not called from: processors that predict returns, or forbid such returns (shadow stacks), are
 * not disturbed. */
#include "libc/intercept_stub.h"

#include "libc/context.h"

long (*kbi_intercept_stub_child)(long flags, long arg[6]);

#if defined(__x86_64__)

/* Called below the red zone. Keeps the registers that a system call keeps. */
__asm__(".text\n.hidden kbi_intercept_stub_enter\n.globl kbi_intercept_stub_enter\n"
	".type kbi_intercept_stub_enter,@function\n"
	"kbi_intercept_stub_enter:\n\t.cfi_startproc\n\t"
	"pushq %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rbp, -16\n\t"
	"movq %rsp, %rbp\n\t.cfi_def_cfa_register rbp\n\t"
	"subq $304, %rsp\n\tandq $-16, %rsp\n\t"
	"movq %rdi, 0(%rsp)\n\tmovq %rsi, 8(%rsp)\n\tmovq %rdx, 16(%rsp)\n\t"
	"movq %r10, 24(%rsp)\n\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\t"
	"movups %xmm0, 48(%rsp)\n\tmovups %xmm1, 64(%rsp)\n\tmovups %xmm2, 80(%rsp)\n\t"
	"movups %xmm3, 96(%rsp)\n\t"
	"movups %xmm4, 112(%rsp)\n\tmovups %xmm5, 128(%rsp)\n\tmovups %xmm6, 144(%rsp)\n\t"
	"movups %xmm7, 160(%rsp)\n\t"
	"movups %xmm8, 176(%rsp)\n\tmovups %xmm9, 192(%rsp)\n\tmovups %xmm10, 208(%rsp)\n\t"
	"movups %xmm11, 224(%rsp)\n\t"
	"movups %xmm12, 240(%rsp)\n\tmovups %xmm13, 256(%rsp)\n\tmovups %xmm14, 272(%rsp)\n\t"
	"movups %xmm15, 288(%rsp)\n\t"
	"subq $64, %rsp\n\t"
	"movq 64(%rsp), %rdi\n\tmovq %rdi, 0(%rsp)\n\tmovq 72(%rsp), %rdi\n\tmovq %rdi, 8(%rsp)\n\t"
	"movq %rdx, 16(%rsp)\n\tmovq %r10, 24(%rsp)\n\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\t"
	"movq %rax, %rdi\n\tmovq %rsp, %rsi\n\tmovq %rbp, %rdx\n\tcld\n\tcall *%r11\n\t"
	"addq $64, %rsp\n\t"
	"movq 0(%rsp), %rdi\n\tmovq 8(%rsp), %rsi\n\tmovq 16(%rsp), %rdx\n\t"
	"movq 24(%rsp), %r10\n\tmovq 32(%rsp), %r8\n\tmovq 40(%rsp), %r9\n\t"
	"movups 48(%rsp), %xmm0\n\tmovups 64(%rsp), %xmm1\n\tmovups 80(%rsp), %xmm2\n\t"
	"movups 96(%rsp), %xmm3\n\t"
	"movups 112(%rsp), %xmm4\n\tmovups 128(%rsp), %xmm5\n\tmovups 144(%rsp), %xmm6\n\t"
	"movups 160(%rsp), %xmm7\n\t"
	"movups 176(%rsp), %xmm8\n\tmovups 192(%rsp), %xmm9\n\tmovups 208(%rsp), %xmm10\n\t"
	"movups 224(%rsp), %xmm11\n\t"
	"movups 240(%rsp), %xmm12\n\tmovups 256(%rsp), %xmm13\n\tmovups 272(%rsp), %xmm14\n\t"
	"movups 288(%rsp), %xmm15\n\t"
	"leave\n\t.cfi_def_cfa rsp, 8\n\tret\n\t.cfi_endproc\n\t"
	".size kbi_intercept_stub_enter,.-kbi_intercept_stub_enter\n");


_Static_assert(KBI_INTERCEPT_STUB_LOWERED == 136, "the stubs say so");

#define BEGIN(name) ".hidden " #name "\n.globl " #name "\n" \
	".type " #name ",@function\n" #name ":\n\t" \
	".cfi_startproc\n\t.cfi_def_cfa rsp, 0\n\t.cfi_register 16, 2\n\t"
#define LOWER "leaq -128(%rsp), %rsp\n\t.cfi_def_cfa_offset 128\n\tpushq %rcx\n\t" \
	".cfi_def_cfa_offset 136\n\t" \
	".cfi_offset 16, -136\n\t"
#define RAISE "popq %rcx\n\t.cfi_def_cfa_offset 128\n\t.cfi_register 16, 2\n\t" \
	"leaq 128(%rsp), %rsp\n\t.cfi_def_cfa_offset 0\n\tjmp *%rcx\n\t"
#define END(name) ".cfi_endproc\n.size " #name ",.-" #name "\n"
#define CHILD "1:\t.cfi_def_cfa_offset 0\n\t.cfi_undefined 16\n\t"

/* The program counter of a thread that is interrupted in the call of kbi_intercept_stub_plain lies
 * at kbi_intercept_stub_behind, or 2 bytes before. */
__asm__(".text\n"
	BEGIN(kbi_intercept_stub_call)
	LOWER "call kbi_intercept_stub_enter\n\t" RAISE
	END(kbi_intercept_stub_call)

	BEGIN(kbi_intercept_stub_plain)
	LOWER "syscall\n.hidden kbi_intercept_stub_behind\n.globl kbi_intercept_stub_behind\n"
	"kbi_intercept_stub_behind:\n\t" RAISE
	END(kbi_intercept_stub_plain)

	BEGIN(kbi_intercept_stub_old)
	LOWER "int $0x80\n\t" RAISE
	END(kbi_intercept_stub_old)

	/* the child finds the address right below its stack */
	BEGIN(kbi_intercept_stub_clone)
	"movq %rcx, -8(%rsi)\n\t"
	LOWER "syscall\n\ttestq %rax, %rax\n\tjz 1f\n\t" RAISE
	CHILD "movq -8(%rsp), %rcx\n\tjmp *%rcx\n\t"
	END(kbi_intercept_stub_clone)

	/* as kbi_intercept_stub_clone; and the child's calls are dispatched as its creator's are:
	 * prctl(59, 1, code, bytes, NULL) */
	BEGIN(kbi_intercept_stub_thread)
	"movq %rcx, -8(%rsi)\n\t"
	LOWER "syscall\n\ttestq %rax, %rax\n\tjz 1f\n\t" RAISE
	CHILD "leaq -8(%rsp), %rsp\n\tpushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n\tpushq %r10\n\t"
	"pushq %r8\n\t"
	"movl $157, %eax\n\tmovl $59, %edi\n\tmovl $1, %esi\n\t"
	"movq kbi_intercept_stub_own(%rip), %rdx\n\tmovq 8+kbi_intercept_stub_own(%rip), %r10\n"
	"\txorl %r8d, %r8d\n\t"
	"syscall\n\t"
	"popq %r8\n\tpopq %r10\n\tpopq %rdx\n\tpopq %rsi\n\tpopq %rdi\n\t"
	"xorl %eax, %eax\n\tpopq %rcx\n\tjmp *%rcx\n\t"
	END(kbi_intercept_stub_thread)

	BEGIN(kbi_intercept_stub_shared)
	".cfi_register 16, 9\n\tmovq %rcx, %r9\n\tsyscall\n\tjmp *%r9\n\t"
	END(kbi_intercept_stub_shared)

	/* the caller's registers are kept outside of its stack, which a child may use meanwhile; the
	 * caller waits outside, too */
	BEGIN(kbi_intercept_stub_apart)
	LOWER "call kbi_intercept_stub_enter\n\t"
	"cmpq $-4096, %rax\n\tja 1f\n\t"
	"popq %rcx\n\t.cfi_def_cfa_offset 128\n\t.cfi_register 16, 2\n\t"
	"leaq 128(%rsp), %rsp\n\t.cfi_def_cfa_offset 0\n\t"
	"movq %rcx, 0(%rax)\n\tmovq %rsp, 8(%rax)\n\tmovq %rbx, 16(%rax)\n\tmovq %rbp, 24(%rax)\n\t"
	"movq %r12, 32(%rax)\n\tmovq %r13, 40(%rax)\n\tmovq %r14, 48(%rax)\n\tmovq %r15, 56(%rax)\n\t"
	"movq %rdi, 64(%rax)\n\tmovq %rsi, 72(%rax)\n\tmovq %rdx, 80(%rax)\n\tmovq %r10, 88(%rax)\n\t"
	"movq %r8, 96(%rax)\n\tmovq %r9, 104(%rax)\n\tfxsave64 144(%rax)\n\t"
	"movq %rax, %rbx\n\t.cfi_undefined 16\n\tmovq 120(%rax), %rsp\n\txorl %ebp, %ebp\n\t"
	"movq %rax, %rdi\n\tcld\n\tcall *136(%rbx)\n\t"
	"movq %rbx, %rdi\n\tmovq %rax, %rsi\n\tleaq 128(%rbx), %rdx\n\tjmp kbi_intercept_stub_go\n\t"
	"1:\t.cfi_def_cfa rsp, 136\n\t.cfi_offset 16, -136\n\t" RAISE
	END(kbi_intercept_stub_apart)

	/* rdi: the struct, rsi: the answer, rdx: a word that becomes 0 when rdi is needed no more. The
	 * mask is set after all values are on the stack of the caller: a handler may run then */
	BEGIN(kbi_intercept_stub_go)
	".cfi_undefined 16\n\tfxrstor64 144(%rdi)\n\tmovq 8(%rdi), %rsp\n\t"
	"leaq -128(%rsp), %rsp\n\tpushq 0(%rdi)\n\t.cfi_def_cfa rsp, 136\n\t.cfi_offset 16, -136\n\t"
	"pushq %rsi\n\t.cfi_adjust_cfa_offset 8\n\tpushq 64(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\t"
	"pushq 72(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\tpushq 80(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\t"
	"pushq 88(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\tpushq 96(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\t"
	"pushq 104(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\tpushq 112(%rdi)\n\t.cfi_adjust_cfa_offset 8\n\t"
	"movq 16(%rdi), %rbx\n\tmovq 24(%rdi), %rbp\n\tmovq 32(%rdi), %r12\n\tmovq 40(%rdi), %r13\n\t"
	"movq 48(%rdi), %r14\n\tmovq 56(%rdi), %r15\n\tmovl $0, (%rdx)\n\t"
	/* rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8) */
	"movl $14, %eax\n\tmovl $2, %edi\n\tmovq %rsp, %rsi\n\txorl %edx, %edx\n\tmovl $8, %r10d\n\t"
	"syscall\n\t"
	"popq %rax\n\t.cfi_adjust_cfa_offset -8\n\tpopq %r9\n\t.cfi_adjust_cfa_offset -8\n\t"
	"popq %r8\n\t.cfi_adjust_cfa_offset -8\n\tpopq %r10\n\t.cfi_adjust_cfa_offset -8\n\t"
	"popq %rdx\n\t.cfi_adjust_cfa_offset -8\n\tpopq %rsi\n\t.cfi_adjust_cfa_offset -8\n\t"
	"popq %rdi\n\t.cfi_adjust_cfa_offset -8\n\tpopq %rax\n\t.cfi_adjust_cfa_offset -8\n\t" RAISE
	END(kbi_intercept_stub_go)

	/* runs fn(arg) on a stack: rdi fn, rcx arg; rsi top; rdx flags, r8 where the number is
	 * written */
	".hidden kbi_intercept_stub_process\n.globl kbi_intercept_stub_process\n"
	".type kbi_intercept_stub_process,@function\n"
	"kbi_intercept_stub_process:\n\t.cfi_startproc\n\t"
	"andq $-16, %rsi\n\tsubq $16, %rsi\n\tmovq %rdi, 0(%rsi)\n\tmovq %rcx, 8(%rsi)\n\t"
	"movq %rdx, %rdi\n\tmovq %r8, %rdx\n\txorl %r10d, %r10d\n\txorl %r8d, %r8d\n\t"
	"movl $56, %eax\n\tsyscall\n\t"
	"testq %rax, %rax\n\tjz 1f\n\tret\n"
	"1:\t.cfi_undefined 16\n\txorl %ebp, %ebp\n\tpopq %rax\n\tpopq %rdi\n\tcall *%rax\n\tud2\n\t"
	END(kbi_intercept_stub_process)

	/* a handler's return, in the bytes that unwinders and debuggers know, without call frame
	 * information, because they would then look no further for these bytes */
	"nop\n.hidden kbi_intercept_stub_return\n.globl kbi_intercept_stub_return\n"
	".type kbi_intercept_stub_return,@function\n"
	"kbi_intercept_stub_return:\n\tmovq $15, %rax\n\t"
	"syscall\n.size kbi_intercept_stub_return,.-kbi_intercept_stub_return\n");

/* Makes the stubs count as libc's code: the range from kbi_intercept_stub_call to
 * kbi_intercept_stub_return, the first and the last above. */
void kbi_intercept_stub_are_used(void)
{
	uintptr_t low = (uintptr_t)kbi_intercept_stub_call;

	kbi_context_is_libcs(low, (uintptr_t)kbi_intercept_stub_return - low);
	kbi_context_stands_for((uintptr_t)kbi_intercept_stub_behind, KBI_INTERCEPT_STUB_LOWERED);
}

struct kbi_intercept_stub_range kbi_intercept_stub_own;

#define AT(field) __builtin_offsetof(struct kbi_intercept_stub_call_apart, field)
_Static_assert(AT(pc) == 0 && AT(sp) == 8 && AT(kept) == 16 && AT(argument) == 64 &&
	AT(mask) == 112, "the stubs say so");
_Static_assert(AT(top) == 120 && AT(used) == 128 && AT(makes) == 136 && AT(fp) == 144,
	"the stubs say so");

#else

#include <errno.h>

#include "libc/real.h"

void kbi_intercept_stub_go(struct kbi_intercept_stub_call_apart *c, long answer, a32 *over)
{
	(void)c, (void)answer, (void)over;
	__builtin_trap(); /* no caller has kept its registers */
}

long kbi_intercept_stub_process(int (*fn)(void *), void *top, long flags, void *arg, void *number)
{
	int pid = kbi_real.clone(fn, top, (int)flags, arg, number);

	return pid < 0 ? -errno : pid;
}

#endif
