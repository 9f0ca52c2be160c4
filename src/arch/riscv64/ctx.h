/* arch/riscv64/ctx.h - the switch: doors for C, frame offsets for ctx.S.
 * Callers: core. Contract in arch/arch.h.
 * Supports any float ABI of RV64; shadow stacks (Zicfiss) are not supported. */
#ifndef KBI_ARCH_CTX_H
#define KBI_ARCH_CTX_H

/* The frame at the stack pointer of a suspended context; struct kbi_ctx_frame in ctx.c asserts the
 * offsets. */
#define KBI_FRAME_RA 0
#define KBI_FRAME_S0 8 /* s0 ... s11 */
#define KBI_FRAME_FCSR 104
#define KBI_FRAME_FS0 112 /* fs0 ... fs11 */
#ifdef __riscv_float_abi_soft
#define KBI_FRAME_SIZE 112
#else
#define KBI_FRAME_SIZE 208
#endif

#ifndef __ASSEMBLER__

#include "base/base.h"

struct kbi_ctx;

KBI_HIDDEN void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *),
			     void *arg);
KBI_HIDDEN void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *),
	void *arg);
KBI_HIDDEN KBI_NORETURN void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg);

#ifdef __riscv_flen
#define KBI_HAVE_FP 1
/* Returns fcsr, which the switch keeps, too. */
static inline uint64_t kbi_fp_get(void)
{
	uint64_t fcsr;

	__asm__ volatile("frcsr %0" : "=r"(fcsr)::"memory");
	return fcsr;
}

static inline void kbi_fp_set(uint64_t fp)
{
	__asm__ volatile("fscsr %0" : : "r"(fp) : "memory");
}
#endif

#endif
#endif
