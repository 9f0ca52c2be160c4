/* arch/riscv64/ctx.c - the first frame of a new context.
 * Callers: core. Runs on the caller's stack; the new stack is only written to. No locks. */
#include "arch/arch.h"

enum { STACK_ALIGN = 16 };

struct kbi_ctx_frame {
	uint64_t ra;
	uint64_t s[12];
	uint64_t fcsr;
#ifndef __riscv_float_abi_soft
	uint64_t fs[12];
#endif
};

#define AT(field, offset) _Static_assert(offsetof(struct kbi_ctx_frame, field) == (offset), #field)
AT(ra, KBI_FRAME_RA);
AT(s, KBI_FRAME_S0);
AT(fcsr, KBI_FRAME_FCSR);
#ifndef __riscv_float_abi_soft
AT(fs, KBI_FRAME_FS0);
#endif
_Static_assert(sizeof(struct kbi_ctx_frame) == KBI_FRAME_SIZE, "frame size");
_Static_assert(KBI_FRAME_SIZE % STACK_ALIGN == 0, "sp is aligned at all times");

KBI_HIDDEN void kbi_ctx_start(void); /* ctx.S */

/* Makes a context. The new thread inherits the floating-point environment of its creator (POSIX
 * pthread_create). */
void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	uintptr_t top = ((uintptr_t)stack_low + size) & -(uintptr_t)STACK_ALIGN;
	struct kbi_ctx_frame *f = (struct kbi_ctx_frame *)top - 1;

	*f = (struct kbi_ctx_frame){
		.ra = (uint64_t)(uintptr_t)kbi_ctx_start,
		.s = {[1] = (uint64_t)(uintptr_t)entry, [2] = (uint64_t)(uintptr_t)arg},
	};
#ifdef __riscv_flen
	__asm__ volatile("frcsr %0" : "=r"(f->fcsr));
#endif
	c->sp = f;
}
