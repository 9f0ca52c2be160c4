/* os/libstub.c - code that stands for a system call instruction. Contract in libstub.h.
 *
 * A handler cannot push the address behind the instruction, for the stack below it is the handler's own: it comes in rcx,
 * which a system call loses anyway. A stub first leaves the red zone alone, then keeps the address on the stack. Where
 * parent and child share that, or the child has one of its own, it is kept elsewhere.
 * No returns to where nobody has called from: processors that guess them, or forbid them, are not disturbed. */
#include "os/libstub.h"

#include "os/context.h"

#if defined(__x86_64__)

/* Called below the red zone: keeps what a system call keeps. */
__asm__(".text\n.hidden kbi_libstub_enter\n.globl kbi_libstub_enter\n.type kbi_libstub_enter,@function\n"
	"kbi_libstub_enter:\n\t.cfi_startproc\n\t"
	"pushq %rbp\n\t.cfi_adjust_cfa_offset 8\n\t.cfi_offset rbp, -16\n\t"
	"movq %rsp, %rbp\n\t.cfi_def_cfa_register rbp\n\t"
	"subq $304, %rsp\n\tandq $-16, %rsp\n\t"
	"movq %rdi, 0(%rsp)\n\tmovq %rsi, 8(%rsp)\n\tmovq %rdx, 16(%rsp)\n\t"
	"movq %r10, 24(%rsp)\n\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\t"
	"movups %xmm0, 48(%rsp)\n\tmovups %xmm1, 64(%rsp)\n\tmovups %xmm2, 80(%rsp)\n\tmovups %xmm3, 96(%rsp)\n\t"
	"movups %xmm4, 112(%rsp)\n\tmovups %xmm5, 128(%rsp)\n\tmovups %xmm6, 144(%rsp)\n\tmovups %xmm7, 160(%rsp)\n\t"
	"movups %xmm8, 176(%rsp)\n\tmovups %xmm9, 192(%rsp)\n\tmovups %xmm10, 208(%rsp)\n\tmovups %xmm11, 224(%rsp)\n\t"
	"movups %xmm12, 240(%rsp)\n\tmovups %xmm13, 256(%rsp)\n\tmovups %xmm14, 272(%rsp)\n\tmovups %xmm15, 288(%rsp)\n\t"
	"subq $64, %rsp\n\t"
	"movq 64(%rsp), %rdi\n\tmovq %rdi, 0(%rsp)\n\tmovq 72(%rsp), %rdi\n\tmovq %rdi, 8(%rsp)\n\t"
	"movq %rdx, 16(%rsp)\n\tmovq %r10, 24(%rsp)\n\tmovq %r8, 32(%rsp)\n\tmovq %r9, 40(%rsp)\n\t"
	"movq %rax, %rdi\n\tmovq %rsp, %rsi\n\tcld\n\tcall *%r11\n\taddq $64, %rsp\n\t"
	"movq 0(%rsp), %rdi\n\tmovq 8(%rsp), %rsi\n\tmovq 16(%rsp), %rdx\n\t"
	"movq 24(%rsp), %r10\n\tmovq 32(%rsp), %r8\n\tmovq 40(%rsp), %r9\n\t"
	"movups 48(%rsp), %xmm0\n\tmovups 64(%rsp), %xmm1\n\tmovups 80(%rsp), %xmm2\n\tmovups 96(%rsp), %xmm3\n\t"
	"movups 112(%rsp), %xmm4\n\tmovups 128(%rsp), %xmm5\n\tmovups 144(%rsp), %xmm6\n\tmovups 160(%rsp), %xmm7\n\t"
	"movups 176(%rsp), %xmm8\n\tmovups 192(%rsp), %xmm9\n\tmovups 208(%rsp), %xmm10\n\tmovups 224(%rsp), %xmm11\n\t"
	"movups 240(%rsp), %xmm12\n\tmovups 256(%rsp), %xmm13\n\tmovups 272(%rsp), %xmm14\n\tmovups 288(%rsp), %xmm15\n\t"
	"leave\n\t.cfi_def_cfa rsp, 8\n\tret\n\t.cfi_endproc\n\t.size kbi_libstub_enter,.-kbi_libstub_enter\n");


_Static_assert(KBI_LIBSTUB_LOWERED == 136, "the stubs say so");

#define BEGIN(name) ".hidden " #name "\n.globl " #name "\n.type " #name ",@function\n" #name ":\n\t" \
	".cfi_startproc\n\t.cfi_def_cfa rsp, 0\n\t.cfi_register 16, 2\n\t"
#define LOWER "leaq -128(%rsp), %rsp\n\t.cfi_def_cfa_offset 128\n\tpushq %rcx\n\t.cfi_def_cfa_offset 136\n\t" \
	".cfi_offset 16, -136\n\t"
#define RAISE "popq %rcx\n\t.cfi_def_cfa_offset 128\n\t.cfi_register 16, 2\n\t" \
	"leaq 128(%rsp), %rsp\n\t.cfi_def_cfa_offset 0\n\tjmp *%rcx\n\t"
#define END(name) ".cfi_endproc\n.size " #name ",.-" #name "\n"
#define CHILD "1:\t.cfi_def_cfa_offset 0\n\t.cfi_undefined 16\n\t"

/* The program counter of who is interrupted in a call of the second stub lies at kbi_libstub_behind, or 2 bytes before. */
__asm__(".text\n"
	BEGIN(kbi_libstub_call)
	LOWER "call kbi_libstub_enter\n\t" RAISE
	END(kbi_libstub_call)

	BEGIN(kbi_libstub_plain)
	LOWER "syscall\n.hidden kbi_libstub_behind\n.globl kbi_libstub_behind\nkbi_libstub_behind:\n\t" RAISE
	END(kbi_libstub_plain)

	BEGIN(kbi_libstub_old)
	LOWER "int $0x80\n\t" RAISE
	END(kbi_libstub_old)

	/* the child finds the address right below its stack */
	BEGIN(kbi_libstub_clone)
	"movq %rcx, -8(%rsi)\n\t"
	LOWER "syscall\n\ttestq %rax, %rax\n\tjz 1f\n\t" RAISE
	CHILD "movq -8(%rsp), %rcx\n\tjmp *%rcx\n\t"
	END(kbi_libstub_clone)

	/* the same, and its calls are to be dispatched as its maker's are: prctl(59, 1, code, bytes, NULL) */
	BEGIN(kbi_libstub_thread)
	"movq %rcx, -8(%rsi)\n\t"
	LOWER "syscall\n\ttestq %rax, %rax\n\tjz 1f\n\t" RAISE
	CHILD "leaq -8(%rsp), %rsp\n\tpushq %rdi\n\tpushq %rsi\n\tpushq %rdx\n\tpushq %r10\n\tpushq %r8\n\t"
	"movl $157, %eax\n\tmovl $59, %edi\n\tmovl $1, %esi\n\t"
	"movq kbi_libstub_own(%rip), %rdx\n\tmovq 8+kbi_libstub_own(%rip), %r10\n\txorl %r8d, %r8d\n\tsyscall\n\t"
	"popq %r8\n\tpopq %r10\n\tpopq %rdx\n\tpopq %rsi\n\tpopq %rdi\n\t"
	"xorl %eax, %eax\n\tpopq %rcx\n\tjmp *%rcx\n\t"
	END(kbi_libstub_thread)

	/* vfork as clone with CLONE_VM, CLONE_VFORK, CLONE_PARENT and SIGCHLD; libc keeps its return address in rdi */
	BEGIN(kbi_libstub_vfork)
	".cfi_register 16, 9\n\tmovq %rcx, %r9\n\tmovq %rdi, %r8\n\tmovl $0xc111, %edi\n\t"
	"xorl %esi, %esi\n\txorl %edx, %edx\n\txorl %r10d, %r10d\n\tmovl $56, %eax\n\tsyscall\n\t"
	"movq %r8, %rdi\n\tjmp *%r9\n\t"
	END(kbi_libstub_vfork)

	BEGIN(kbi_libstub_shared)
	".cfi_register 16, 9\n\tmovq %rcx, %r9\n\tsyscall\n\tjmp *%r9\n\t"
	END(kbi_libstub_shared)

	/* how a handler returns, in the bytes that unwinders and debuggers know, and without a description that would
	 * make them look no further */
	"nop\n.hidden kbi_libstub_return\n.globl kbi_libstub_return\n.type kbi_libstub_return,@function\n"
	"kbi_libstub_return:\n\tmovq $15, %rax\n\tsyscall\n.size kbi_libstub_return,.-kbi_libstub_return\n");

/* They stand for libc's code. The first and the last as they are written above. */
void kbi_libstub_are_used(void)
{
	uintptr_t low = (uintptr_t)kbi_libstub_call;

	kbi_context_is_libcs(low, (uintptr_t)kbi_libstub_return - low);
	kbi_context_stands_for((uintptr_t)kbi_libstub_behind, KBI_LIBSTUB_LOWERED);
}

struct kbi_libstub_range kbi_libstub_own;

#endif
