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
