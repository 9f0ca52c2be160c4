/* arch/aarch64/ctx.c - the first frame of a new context.
 * Callers: core. Runs on the caller's stack; the new stack is only written to. No locks. */
#include "arch/arch.h"

enum { STACK_ALIGN = 16 };

struct kbi_ctx_frame {
	uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29, x30;
	uint64_t d8, d9, d10, d11, d12, d13, d14, d15;
	uint64_t fpcr, fpsr;
};

#define AT(field, offset) _Static_assert(offsetof(struct kbi_ctx_frame, field) == (offset), #field)
AT(x19, KBI_FRAME_X19);
AT(x21, KBI_FRAME_X21);
AT(x23, KBI_FRAME_X23);
AT(x25, KBI_FRAME_X25);
AT(x27, KBI_FRAME_X27);
AT(x29, KBI_FRAME_X29);
AT(d8, KBI_FRAME_D8);
AT(d10, KBI_FRAME_D10);
AT(d12, KBI_FRAME_D12);
AT(d14, KBI_FRAME_D14);
AT(fpcr, KBI_FRAME_FPCR);
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
		.x19 = (uint64_t)(uintptr_t)entry,
		.x20 = (uint64_t)(uintptr_t)arg,
		.x30 = (uint64_t)(uintptr_t)kbi_ctx_start,
	};
	__asm__ volatile("mrs %0, fpcr" : "=r"(f->fpcr));
	__asm__ volatile("mrs %0, fpsr" : "=r"(f->fpsr));
	c->sp = f;
}
