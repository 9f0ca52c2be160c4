/* arch/x86_64/cpu.h - pause, time-stamp counter and thread pointer (the FS base).
 * Callers: all rooms (relax, ticks), libc (thread pointer). Calls no unit; runs on the
 * caller's stack.
 * FSGSBASE: Linux 5.9 and later lets user space write FS itself and says so in bit 1 of AT_HWCAP2.
 * On older kernels kbi_tp_set is a system call (arch_prctl), which takes some 100 ns instead of 4.
 * kbi_tp_set changes the meaning of every TLS address, and the compiler does not know this: a
 * function that calls kbi_tp_set must be KBI_NOINLINE and must not use TLS on both sides of the
 * call. */
#ifndef KBI_ARCH_CPU_H
#define KBI_ARCH_CPU_H

#include "base/base.h"

#define KBI_HAVE_TP 1
#define KBI_HAVE_SEGMENTS 1

/* constant after kbi_tp_init; true: FS is written without the kernel */
extern KBI_HIDDEN bool kbi_tp_fast;

/* Chooses between FSGSBASE and the system call. Call once, before the first fast kbi_tp_set; until
 * then kbi_tp_set is a system call. If allow_fast is false, it stays one. */
KBI_HIDDEN void kbi_tp_init(bool allow_fast);
KBI_HIDDEN void kbi_tp_set_by_kernel(void *tp);

static inline void kbi_cpu_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}

static inline uint64_t kbi_cpu_ticks(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* The x86-64 TLS ABI keeps the FS base in the first word it points to. */
static inline void *kbi_tp_get(void)
{
	void *tp;

	__asm__ volatile("movq %%fs:0, %0" : "=r"(tp)::"memory");
	return tp;
}

/* Call only where kbi_tp_fast is true. */
static inline void kbi_tp_write(void *tp)
{
	__asm__ volatile("wrfsbase %0" ::"r"(tp) : "memory");
}

static inline void kbi_tp_set(void *tp)
{
	if (kbi_likely(kbi_tp_fast))
		kbi_tp_write(tp);
	else
		kbi_tp_set_by_kernel(tp);
}

static inline void kbi_tp_set_segment(unsigned selector)
{
	__asm__ volatile("movl %0, %%fs" ::"r"(selector) : "memory");
}

/* Contract in arch.h. */
#define KBI_TWICE_CALL(name, before, after, otherwise) \
	__asm__("\t.text\n\t.p2align 4\n\t.globl\t" #name "\n\t.type\t" #name ", @function\n" #name \
		":\n" \
		"\t.cfi_startproc\n" \
		"\tendbr64\n" \
		"\tmovq (%rsp), %rdi\n" \
		"\tsubq $8, %rsp\n" \
		"\t.cfi_adjust_cfa_offset 8\n" \
		"\tcall " #before "\n" \
		"\taddq $16, %rsp\n" \
		"\t.cfi_adjust_cfa_offset -16\n" \
		"\t.cfi_undefined rip\n" \
		"\tcall *%rax\n" \
		"\tmovslq %eax, %rdi\n" \
		"\tcall " #after "\n" \
		"\tjmp *%rdx\n" \
		"\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n")

#endif
