/* arch/aarch64/cpu.h - pause, virtual counter and thread pointer (TPIDR_EL0).
 * Callers: all rooms (relax, ticks), libc (thread pointer). Calls no unit; runs on the
 * caller's stack.
 * kbi_tp_set changes the meaning of every TLS address, and the compiler does not know this: a
 * function that calls kbi_tp_set must be KBI_NOINLINE and must not use TLS on both sides of the
 * call. */
#ifndef KBI_ARCH_CPU_H
#define KBI_ARCH_CPU_H

#include "base/base.h"

#define KBI_HAVE_TP 1
#define kbi_tp_fast true /* user space may always write TPIDR_EL0 */

static inline void kbi_tp_init(bool allow_fast)
{
	(void)allow_fast;
}

/* Pauses by isb, which waits some ten cycles; yield is a no-op on most cores. */
static inline void kbi_cpu_relax(void)
{
	__asm__ volatile("isb" ::: "memory");
}

static inline uint64_t kbi_cpu_ticks(void)
{
	uint64_t t;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

static inline void *kbi_tp_get(void)
{
	void *tp;

	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tp)::"memory");
	return tp;
}

static inline void kbi_tp_set(void *tp)
{
	__asm__ volatile("msr tpidr_el0, %0" ::"r"(tp) : "memory");
}

/* Contract in arch.h. */
#define KBI_TWICE_CALL(name, before, after, otherwise) \
	__asm__("\t.text\n\t.p2align 4\n\t.globl\t" #name "\n\t.type\t" #name ", %function\n" #name \
		":\n" \
		"\t.cfi_startproc\n" \
		"\thint #34\n" \
		"\tmov x0, x30\n" \
		"\tbl " #before "\n" \
		"\t.cfi_undefined x30\n" \
		"\tblr x0\n" \
		"\tsxtw x0, w0\n" \
		"\tbl " #after "\n" \
		"\tmov x30, x1\n" \
		"\tret\n" \
		"\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n")

#endif
