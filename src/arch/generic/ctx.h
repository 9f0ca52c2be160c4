/* arch/generic/ctx.h - the switch in portable C: doors only, see ctx.c.
 * Callers: core. Contract in arch/arch.h.
 * If KBI_GENERIC_SIGSTACK is 1, a stack must hold a signal frame in addition to the thread's own
 * needs: 16 KiB or more is a safe size. */
#ifndef KBI_ARCH_CTX_H
#define KBI_ARCH_CTX_H

#include "base/base.h"

/* How a context enters its stack: 0 makecontext, 1 a signal handler on an alternate stack. */
#ifndef KBI_GENERIC_SIGSTACK
#ifdef __GLIBC__
#define KBI_GENERIC_SIGSTACK 0
#else
#define KBI_GENERIC_SIGSTACK 1
#endif
#endif

struct kbi_ctx;

KBI_HIDDEN void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *),
			     void *arg);
KBI_HIDDEN void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *),
	void *arg);
KBI_HIDDEN KBI_NORETURN void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg);

#endif
