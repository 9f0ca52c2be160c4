/* arch/x86_64/ctx.h - the switch, and the frame's offsets for ctx.S.
 * Callers: core. See arch/arch.h for the contract. Works with and without IBT (endbr64); shadow
 * stacks (SHSTK) are not supported, ctx.S is not marked for them, so a program linked with it is not. */
#ifndef KBI_ARCH_CTX_H
#define KBI_ARCH_CTX_H

/* A suspended context's stack, from its stack pointer up; the switch is in line, so the callee-saved registers that
 * matter are where the compiler of the calling function put them (it sees all of them clobbered):
 *
 *      sp ->  0  rbp
 *             8  where to go on
 *            16  the calling function's own frame; of a new context: entry, its argument, control words
 * Who switches runs `after` itself, on the stack just loaded, below that frame: who is resumed has nothing to ask. He
 * leaves the context that he has loaded in rdx, so who is resumed need not keep whom he is.
 * The room and who includes it is compiled with -mno-red-zone: nothing of a frame lies below the stack pointer. */
#define KBI_FRAME_RBP 0
#define KBI_FRAME_RIP 8
#define KBI_FRAME_SIZE 16
#define KBI_FRAME_ENTRY 16
#define KBI_FRAME_ARG 24
#define KBI_FRAME_MXCSR 32
#define KBI_FRAME_FCW 36
#define KBI_FRAME_NEW_SIZE 48

#ifndef __ASSEMBLER__

#include "base/base.h"

struct kbi_ctx;

KBI_HIDDEN void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg);

/* All that a function may lose but rax, rdx, rsi, rdi: with AVX-512 there are more vector registers and the masks. */
#ifdef __AVX512F__
#define KBI_CTX_MORE \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
	"xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define KBI_CTX_MORE
#endif
#define KBI_CTX_LOST \
	"rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", \
	"xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", \
	"st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" KBI_CTX_MORE

/* Always: the context that is left in rax, the one that is loaded in rdx. */
#define KBI_CTX_SAVE "leaq 1f(%%rip), %%rcx\n\tpushq %%rcx\n\tpushq %%rbp\n\tmovq %%rsp, (%%rax)\n\t"
#define KBI_CTX_GO "popq %%rbp\n\tpopq %%rcx\n\tjmp *%%rcx\n\t"
#define KBI_CTX_LOAD "movq (%%rdx), %%rsp\n\t" KBI_CTX_GO
/* after (rsi) with its argument (rdi) on the stack that is loaded, below its frame; a stack walk ends there. */
#define KBI_CTX_AFTER                                                                                                  \
	"movq %%rdx, %%r12\n\tmovq (%%rdx), %%rbx\n\tmovq %%rbx, %%rsp\n\tandq $-16, %%rsp\n\t"                \
	"xorl %%ebp, %%ebp\n\t.cfi_remember_state\n\t.cfi_undefined rip\n\t"                                   \
	"call *%%rsi\n\tmovq %%r12, %%rdx\n\tmovq %%rbx, %%rsp\n\t" KBI_CTX_GO ".cfi_restore_state\n\t"

/* In line because a call costs more than the switch: it pairs no call with a return, so the processor's return
 * stack stays right for callers that suspend in the same functions, and saves what is live instead of all. A
 * function that contains it must be a KBI_SWITCHER and use no TLS on both sides of it. */
#define KBI_CTX_BARE 1
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_bare(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	/* that the frame is named makes rbp lead to it, which a function that calls nobody would do without: a parked
	 * thread's backtrace begins there */
	if (kbi_likely(!after))
		__asm__ volatile(KBI_CTX_SAVE KBI_CTX_LOAD "1:"
				 : "+a"(save), "+d"(load)
				 : "m"(*(char *)__builtin_frame_address(0))
				 : "rsi", "rdi", KBI_CTX_LOST);
	else
		__asm__ volatile(KBI_CTX_SAVE KBI_CTX_AFTER "1:"
				 : "+a"(save), "+d"(load), "+S"(after), "+D"(arg)
				 :
				 : KBI_CTX_LOST);
	return load; /* of who has come here: `save` */
}

#define KBI_CTX_KEEPING 1
/* Two values lie below the calling function's frame meanwhile, and come back: that need not have a frame before. */
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_keeping(struct kbi_ctx *save, struct kbi_ctx *load, void **a, void **b)
{
	__asm__ volatile("pushq %%rdi\n\tpushq %%rsi\n\t" KBI_CTX_SAVE KBI_CTX_LOAD "1:\tpopq %%rsi\n\tpopq %%rdi"
			 : "+a"(save), "+d"(load), "+D"(*a), "+S"(*b)
			 : "m"(*(char *)__builtin_frame_address(0))
			 : KBI_CTX_LOST);
	return load;
}

/* A new context needs no frame when it is entered at once: its stack gets a null return address, as kbi_ctx_start
 * leaves it, and entry its argument. FP control words stay. */
#define KBI_CTX_NEW 1
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_new(struct kbi_ctx *save, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	uintptr_t load = ((uintptr_t)stack_low + size) & -(uintptr_t)16;

	__asm__ volatile(KBI_CTX_SAVE "movq %%rdx, %%rsp\n\t"
				      "xorl %%ebp, %%ebp\n\t"
				      "pushq %%rbp\n\t"
				      "jmp *%%rsi\n"
				      "1:"
			 : "+a"(save), "+d"(load), "+S"(entry), "+D"(arg)
			 :
			 : KBI_CTX_LOST);
	return (struct kbi_ctx *)load; /* as above */
}

/* In line too: a call that never returns would leave an entry on the processor's return stack, and the context that
 * goes on would mispredict its own returns. */
static inline __attribute__((always_inline)) KBI_NORETURN void kbi_ctx_leave(struct kbi_ctx *load,
									      void *(*after)(void *), void *arg)
{
	if (!after)
		__asm__ volatile(KBI_CTX_LOAD : : "d"(load) : "memory");
	else
		__asm__ volatile(KBI_CTX_AFTER : : "d"(load), "S"(after), "D"(arg) : "memory");
	__builtin_unreachable();
}

/* What posix/ucontext has of libc's ucontext_t: offsets. Its functions getcontext and swapcontext save what a function
 * keeps for its caller, and its arguments, and go on in `got` and `swapped`, which have the same arguments; `start` calls
 * `ended` with what rbx holds; `go` loads a context and goes there; `arrive` calls `arrived` first, below the
 * context, which lies on its own stack. */
#define KBI_HAVE_UCONTEXT 1
#define KBI_UC_GREGS 40
#define KBI_UC_FPREGS 224
#define KBI_UC_FPMEM 424
#define KBI_UC_ARGUMENTS 6
#define KBI_UC_FUNCTION(name, hidden) \
	"\t.p2align 4\n\t.globl\t" #name "\n" hidden "\t.type\t" #name ", @function\n" #name ":\n\t.cfi_startproc\n\tendbr64\n"
#define KBI_UC_END(name) "\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n"
#define KBI_UC_SAVE \
	"\tmovq %r8, 40(%rdi)\n\tmovq %r9, 48(%rdi)\n\tmovq %r12, 72(%rdi)\n\tmovq %r13, 80(%rdi)\n" \
	"\tmovq %r14, 88(%rdi)\n\tmovq %r15, 96(%rdi)\n\tmovq %rdi, 104(%rdi)\n\tmovq %rsi, 112(%rdi)\n" \
	"\tmovq %rbp, 120(%rdi)\n\tmovq %rbx, 128(%rdi)\n\tmovq %rdx, 136(%rdi)\n\tmovq %rcx, 152(%rdi)\n" \
	"\tleaq 8(%rsp), %rax\n\tmovq %rax, 160(%rdi)\n\tmovq (%rsp), %rax\n\tmovq %rax, 168(%rdi)\n" \
	"\tleaq 424(%rdi), %rax\n\tmovq %rax, 224(%rdi)\n\tfnstenv (%rax)\n\tfldcw (%rax)\n\tstmxcsr 24(%rax)\n"
#define KBI_UC_LOAD \
	"\tmovq 224(%rdi), %rax\n\tfldcw (%rax)\n\tldmxcsr 24(%rax)\n" \
	"\tmovq 40(%rdi), %r8\n\tmovq 48(%rdi), %r9\n\tmovq 72(%rdi), %r12\n\tmovq 80(%rdi), %r13\n" \
	"\tmovq 88(%rdi), %r14\n\tmovq 96(%rdi), %r15\n\tmovq 112(%rdi), %rsi\n\tmovq 120(%rdi), %rbp\n" \
	"\tmovq 128(%rdi), %rbx\n\tmovq 136(%rdi), %rdx\n\tmovq 152(%rdi), %rcx\n\tmovq 160(%rdi), %rax\n" \
	"\tmovq 168(%rdi), %r11\n\tmovq 104(%rdi), %rdi\n\tmovq %rax, %rsp\n\txorl %eax, %eax\n\tjmp *%r11\n"
/* The caller of `arrived` is what the context goes on as: CFA, rbx, rbp, r12 to r15 and rip are in it. */
#define KBI_UC_FRAME \
	"\t.cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6\n\t.cfi_escape 0x10, 3, 3, 0x77, 0x80, 1\n" \
	"\t.cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0\n\t.cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0\n" \
	"\t.cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0\n\t.cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0\n" \
	"\t.cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0\n\t.cfi_escape 0x10, 16, 3, 0x77, 0xa8, 1\n"
#define KBI_UC_CALLS(got, swapped, start, ended, go, arrive, arrived) \
	__asm__("\t.text\n" KBI_UC_FUNCTION(getcontext, "") KBI_UC_SAVE "\tjmp " #got "\n" KBI_UC_END(getcontext) \
		KBI_UC_FUNCTION(swapcontext, "") KBI_UC_SAVE "\tjmp " #swapped "\n" KBI_UC_END(swapcontext) \
		KBI_UC_FUNCTION(go, "\t.hidden\t" #go "\n") "\t.cfi_undefined rip\n" KBI_UC_LOAD KBI_UC_END(go) \
		KBI_UC_FUNCTION(arrive, "\t.hidden\t" #arrive "\n") "\t.cfi_signal_frame\n\t.cfi_undefined rip\n" \
		"\tmovq %rdi, %rsp\n" KBI_UC_FRAME "\tcall " #arrived "\n\tmovq %rsp, %rdi\n\tjmp " #go "\n" \
		KBI_UC_END(arrive) \
		"\t.p2align 4\n" KBI_UC_FUNCTION(start, "\t.hidden\t" #start "\n") \
		"\t.cfi_undefined rip\n\tmovq %rbx, %rdi\n\tcall " #ended "\n\thlt\n" KBI_UC_END(start))

#define KBI_HAVE_FP 1
/* MXCSR and the x87 control word: 5 ns to read and write on Zen 3, more than the switch itself. */
static inline uint64_t kbi_fp_get(void)
{
	uint32_t mxcsr;
	uint16_t fcw;

	__asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(fcw)::"memory");
	return mxcsr | (uint64_t)fcw << 32;
}

static inline void kbi_fp_set(uint64_t fp)
{
	uint32_t mxcsr = (uint32_t)fp;
	uint16_t fcw = (uint16_t)(fp >> 32);

	__asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr), "m"(fcw) : "memory");
}

static inline __attribute__((always_inline)) void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load,
								 void *(*after)(void *), void *arg)
{
	uint64_t fp = kbi_fp_get();

	kbi_ctx_switch_bare(save, load, after, arg);
	kbi_fp_set(fp);
}

#endif
#endif
