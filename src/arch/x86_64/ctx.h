/* arch/x86_64/ctx.h - the switch, and the offsets of the frame for ctx.S.
 * Callers: core. Contract in arch/arch.h.
 * Works with and without IBT (endbr64).
 * Shadow stacks (SHSTK) are not supported: ctx.S is not marked for them, so a program linked with
 * it is not marked. */
#ifndef KBI_ARCH_CTX_H
#define KBI_ARCH_CTX_H

/* The stack of a suspended context, from its stack pointer up. The switch is in line: it clobbers
 * all registers, so the compiler of the calling function stores the callee-saved registers that are
 * live.
 *
 *      sp ->  0  rbp
 *             8  where to continue
 *            16  the frame of the calling function;
 *                for a new context: entry, its argument, control words
 *
 * The switching context runs `after` itself, on the loaded stack, below that frame, so the resumed
 * context tests nothing. The switching context leaves the loaded context in rdx, so the resumed
 * context need not keep its own address. This room and all units that include this file are
 * compiled with -mno-red-zone: no part of a frame lies below the stack pointer. */
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

KBI_HIDDEN void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *),
	void *arg);

/* All registers that a function may lose, except rax, rdx, rsi, rdi. AVX-512 adds vector registers
 * and masks. */
#ifdef __AVX512F__
#define KBI_CTX_MORE \
	, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", \
	"xmm26", "xmm27", \
	"xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define KBI_CTX_MORE
#endif
#define KBI_CTX_LOST \
	"rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", \
	"xmm1", "xmm2", "xmm3", \
	"xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", \
	"xmm15", \
	"st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)" KBI_CTX_MORE

/* All switches: rax holds the context that is left, rdx the context that is loaded. */
#define KBI_CTX_SAVE "leaq 1f(%%rip), %%rcx\n\tpushq %%rcx\n\tpushq %%rbp\n" \
	"\tmovq %%rsp, (%%rax)\n\t"
#define KBI_CTX_GO "popq %%rbp\n\tpopq %%rcx\n\tjmp *%%rcx\n\t"
#define KBI_CTX_LOAD "movq (%%rdx), %%rsp\n\t" KBI_CTX_GO
/* Calls after (rsi) with its argument (rdi) on the loaded stack, below its frame. A stack walk ends
 * there. */
#define KBI_CTX_AFTER \
	"movq %%rdx, %%r12\n\tmovq (%%rdx), %%rbx\n\tmovq %%rbx, %%rsp\n\tandq $-16, %%rsp\n\t" \
	"xorl %%ebp, %%ebp\n\t.cfi_remember_state\n\t.cfi_undefined rip\n\t" \
	"call *%%rsi\n\tmovq %%r12, %%rdx\n\tmovq %%rbx, %%rsp\n\t" KBI_CTX_GO ".cfi_restore_state\n\t"

/* Switches in line, because a call costs more than the switch. Without a call there is no unpaired
 * return, so the processor's return stack stays right for callers that suspend in the same
 * functions; and only live registers are saved. A function that contains this switch must be a
 * KBI_SWITCHER and must not use TLS on both sides of it. */
#define KBI_CTX_BARE 1
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_bare(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	/* Naming the frame address makes rbp point to the frame, which a function without calls would
	 * not set up: the backtrace of a parked thread begins there. */
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
	return load; /* the resumer's `load`, which is our `save` */
}

#define KBI_CTX_KEEPING 1
/* Keeps two values below the calling function's frame during the switch; the function needs no
 * frame for that. */
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_keeping(struct kbi_ctx *save, struct kbi_ctx *load, void **a, void **b)
{
	__asm__ volatile("pushq %%rdi\n\tpushq %%rsi\n\t" KBI_CTX_SAVE KBI_CTX_LOAD
		"1:\tpopq %%rsi\n\tpopq %%rdi"
			 : "+a"(save), "+d"(load), "+D"(*a), "+S"(*b)
			 : "m"(*(char *)__builtin_frame_address(0))
			 : KBI_CTX_LOST);
	return load;
}

/* Enters a new context at once, so the context needs no frame: its stack gets a null return
 * address, as kbi_ctx_start leaves it, and entry gets its argument. FP control words stay as they
 * are. */
#define KBI_CTX_NEW 1
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_new(struct kbi_ctx *save, void *stack_low, size_t size, void (*entry)(void *),
	void *arg)
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
	return (struct kbi_ctx *)load; /* as in kbi_ctx_switch_bare */
}

/* In line, too: a call that never returns would leave an entry on the processor's return stack, and
 * the resumed context would mispredict its own returns. */
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
/* Returns MXCSR and the x87 control word. Reading and writing them takes 5 ns on Zen 3, more than
 * the switch itself. */
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

static inline __attribute__((always_inline)) void kbi_ctx_switch(struct kbi_ctx *save,
	struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	uint64_t fp = kbi_fp_get();

	kbi_ctx_switch_bare(save, load, after, arg);
	kbi_fp_set(fp);
}

#endif
#endif
