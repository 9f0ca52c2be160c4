/* arch/aarch64/ctx.h - the switch: doors for C, frame offsets for ctx.S.
 * Callers: core. Contract in arch/arch.h.
 * BTI is supported (bti c). This code does not sign return addresses; code that signs its own
 * works.
 * Guarded control stacks and live SME state are not supported. */
#ifndef KBI_ARCH_CTX_H
#define KBI_ARCH_CTX_H

/* The frame at the stack pointer of a suspended context; struct kbi_ctx_frame in ctx.c asserts the
 * offsets. */
#define KBI_FRAME_X19 0
#define KBI_FRAME_X21 16
#define KBI_FRAME_X23 32
#define KBI_FRAME_X25 48
#define KBI_FRAME_X27 64
#define KBI_FRAME_X29 80
#define KBI_FRAME_D8 96
#define KBI_FRAME_D10 112
#define KBI_FRAME_D12 128
#define KBI_FRAME_D14 144
#define KBI_FRAME_FPCR 160
#define KBI_FRAME_SIZE 176

#ifndef __ASSEMBLER__

#include "base/base.h"

struct kbi_ctx;

KBI_HIDDEN void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *),
			     void *arg);
KBI_HIDDEN void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *),
	void *arg);
KBI_HIDDEN KBI_NORETURN void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg);

#define KBI_HAVE_FP 1
/* Returns FPCR and FPSR, which the switch keeps, too. */
static inline uint64_t kbi_fp_get(void)
{
	uint64_t fpcr, fpsr;

	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fpcr), "=r"(fpsr)::"memory");
	return (fpcr & UINT32_MAX) | fpsr << 32;
}

static inline void kbi_fp_set(uint64_t fp)
{
	__asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(fp & UINT32_MAX), "r"(fp >> 32)
		: "memory");
}

#endif
#endif
