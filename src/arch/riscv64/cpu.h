/* arch/riscv64/cpu.h - pause, time and thread pointer (register tp).
 * Callers: all rooms (relax, ticks), libc (thread pointer). Calls no unit; runs on the
 * caller's stack.
 * kbi_tp_set changes the meaning of every TLS address, and the compiler does not know this: a
 * function that calls kbi_tp_set must be KBI_NOINLINE and must not use TLS on both sides of the
 * call. */
#ifndef KBI_ARCH_CPU_H
#define KBI_ARCH_CPU_H

#include "base/base.h"

#define KBI_HAVE_TP 1
#define kbi_tp_fast true /* a plain register */

static inline void kbi_tp_init(bool allow_fast)
{
	(void)allow_fast;
}

/* Pauses by `pause` of Zihintpause, written by its number: a fence without effect on machines that
 * lack it. */
static inline void kbi_cpu_relax(void)
{
	__asm__ volatile(".4byte 0x0100000f" ::: "memory");
}

static inline uint64_t kbi_cpu_ticks(void)
{
	uint64_t t;

	__asm__ volatile("rdtime %0" : "=r"(t));
	return t;
}

static inline void *kbi_tp_get(void)
{
	void *tp;

	__asm__ volatile("mv %0, tp" : "=r"(tp)::"memory");
	return tp;
}

static inline void kbi_tp_set(void *tp)
{
	__asm__ volatile("mv tp, %0" ::"r"(tp) : "memory");
}

/* Contract in arch.h. */
#define KBI_TWICE_CALL(name, before, after, otherwise) \
	__asm__("\t.text\n\t.p2align 4\n\t.globl\t" #name "\n\t.type\t" #name ", @function\n" #name \
		":\n" \
		"\t.cfi_startproc\n" \
		"\tmv a0, ra\n" \
		"\tcall " #before "\n" \
		"\t.cfi_undefined ra\n" \
		"\tjalr a0\n" \
		"\tsext.w a0, a0\n" \
		"\tcall " #after "\n" \
		"\tjr a1\n" \
		"\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n")

#endif
