/* arch/aarch64/uctx.h - libc's getcontext family without its system calls, and the parts of
 * ucontext_t that the family uses.
 * Callers: posix/ucontext. Contract in arch/arch.h.
 * Offsets in ucontext_t: x0 184, x19 336, x29 416, x30 424, sp 432, pc 440. At 464 begins the
 * kernel's record of the floating-point state: magic and size, FPSR 472, FPCR 476, v8 608. At 992
 * the records end.
 * As in libc, the functions save the registers that a function keeps for its caller, and load x18
 * and the arguments besides. They continue by `ret`, which needs no landing pad. */
#ifndef KBI_ARCH_UCTX_H
#define KBI_ARCH_UCTX_H

#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "base/base.h"

#define KBI_HAVE_UCONTEXT 1
enum {
	KBI_UC_BYTES = 992 + 16, /* the part that is written and read */
	KBI_UC_ARGUMENTS = 8,
};
_Static_assert(offsetof(ucontext_t, uc_mcontext.regs) == 184, "as it is below");
_Static_assert(offsetof(ucontext_t, uc_mcontext.sp) == 432, "as it is below");
_Static_assert(offsetof(ucontext_t, uc_mcontext.pc) == 440, "as it is below");
_Static_assert(offsetof(ucontext_t, uc_mcontext.__reserved) == 464, "as it is below");

#define KBI_UC_FUNCTION(name, hidden) \
	"\t.p2align 4\n\t.globl\t" #name "\n" hidden "\t.type\t" #name ", %function\n" #name \
		":\n\t.cfi_startproc\n\thint #34\n"
#define KBI_UC_END(name) "\t.cfi_endproc\n\t.size\t" #name ", . - " #name "\n"
#define KBI_UC_SAVE \
	"\tstr xzr, [x0, #184]\n\tstp x18, x19, [x0, #328]\n\tstp x20, x21, [x0, #344]\n" \
	"\tstp x22, x23, [x0, #360]\n\tstp x24, x25, [x0, #376]\n\tstp x26, x27, [x0, #392]\n" \
	"\tstp x28, x29, [x0, #408]\n\tmov x9, sp\n\tstp x30, x9, [x0, #424]\n" \
	"\tstp x30, xzr, [x0, #440]\n" \
	"\tmov w9, #0x8001\n\tmovk w9, #0x4650, lsl #16\n\tmov w10, #528\n\tadd x11, x0, #464\n" \
	"\tstp w9, w10, [x11]\n\tmrs x9, fpsr\n\tmrs x10, fpcr\n\tstp w9, w10, [x11, #8]\n" \
	"\tstp q8, q9, [x11, #144]\n\tstp q10, q11, [x11, #176]\n\tstp q12, q13, [x11, #208]\n" \
	"\tstp q14, q15, [x11, #240]\n\tstr xzr, [x11, #528]\n"
#define KBI_UC_LOAD \
	"\tadd x11, x0, #464\n\tmov w9, #0x8001\n\tmovk w9, #0x4650, lsl #16\n\tldr w10, [x11]\n" \
		"\tcmp w9, w10\n" \
	"\tb.ne 1f\n\tldp w9, w10, [x11, #8]\n\tmsr fpsr, x9\n\tmsr fpcr, x10\n" \
	"\tldp q8, q9, [x11, #144]\n" \
	"\tldp q10, q11, [x11, #176]\n\tldp q12, q13, [x11, #208]\n\tldp q14, q15, [x11, #240]\n" \
	"1:\tldp x18, x19, [x0, #328]\n\tldp x20, x21, [x0, #344]\n\tldp x22, x23, [x0, #360]\n" \
	"\tldp x24, x25, [x0, #376]\n\tldp x26, x27, [x0, #392]\n\tldp x28, x29, [x0, #408]\n" \
	"\tldp x30, x9, [x0, #424]\n\tldr x16, [x0, #440]\n\tldp x2, x3, [x0, #200]\n" \
	"\tldp x4, x5, [x0, #216]\n" \
	"\tldp x6, x7, [x0, #232]\n\tldp x0, x1, [x0, #184]\n\tmov sp, x9\n\tret x16\n"
/* Unwind rules: the context is the caller of `arrived`. CFA, x19 to x29, v8 to v15 and pc, which is
 * the return address, are in the context. */
#define KBI_UC_IN(reg, low, high) "\t.cfi_escape 0x10, " #reg ", 3, 0x8f, " #low ", " #high "\n"
#define KBI_UC_FRAME \
	"\t.cfi_escape 0x0f, 4, 0x8f, 0xb0, 3, 6\n" \
	KBI_UC_IN(19, 0xd0, 2) KBI_UC_IN(20, 0xd8, 2) KBI_UC_IN(21, 0xe0, 2) KBI_UC_IN(22, 0xe8, 2) \
	KBI_UC_IN(23, 0xf0, 2) KBI_UC_IN(24, 0xf8, 2) KBI_UC_IN(25, 0x80, 3) KBI_UC_IN(26, 0x88, 3) \
	KBI_UC_IN(27, 0x90, 3) KBI_UC_IN(28, 0x98, 3) KBI_UC_IN(29, 0xa0, 3) KBI_UC_IN(30, 0xb8, 3) \
	KBI_UC_IN(72, 0xe0, 4) KBI_UC_IN(73, 0xf0, 4) KBI_UC_IN(74, 0x80, 5) KBI_UC_IN(75, 0x90, 5) \
	KBI_UC_IN(76, 0xa0, 5) KBI_UC_IN(77, 0xb0, 5) KBI_UC_IN(78, 0xc0, 5) KBI_UC_IN(79, 0xd0, 5)
#define KBI_UC_CALLS(got, swapped, start, ended, go, arrive, arrived) \
	__asm__("\t.text\n" KBI_UC_FUNCTION(getcontext, "") KBI_UC_SAVE "\tb " #got "\n" \
		KBI_UC_END(getcontext) \
		KBI_UC_FUNCTION(swapcontext, "") KBI_UC_SAVE "\tb " #swapped "\n" KBI_UC_END(swapcontext) \
		KBI_UC_FUNCTION(go, "\t.hidden\t" #go "\n") "\t.cfi_undefined x30\n" \
		KBI_UC_LOAD KBI_UC_END(go) \
		KBI_UC_FUNCTION(arrive, "\t.hidden\t" #arrive "\n") \
		"\t.cfi_signal_frame\n\t.cfi_undefined x30\n" \
		"\tmov sp, x0\n" KBI_UC_FRAME "\tbl " #arrived "\n\tmov x0, sp\n\tb " #go "\n" \
		KBI_UC_END(arrive) \
		"\t.p2align 4\n\t.cfi_startproc\n\t.cfi_undefined x30\n\tnop\n\t.globl\t" #start \
		"\n\t.hidden\t" #start \
		"\n\t.type\t" #start ", %function\n" #start ":\n\tmov x0, x19\n\tbl " #ended \
		"\n\tbrk #0\n" KBI_UC_END(start))

/* Returns true: contexts have no mark of ours, and libc's own functions are not used. */
static inline bool kbi_uc_is_kernels(const ucontext_t *u)
{
	(void)u;
	return true;
}

static inline ucontext_t *kbi_uc_copy_below(const ucontext_t *u)
{
	ucontext_t *copy =
		(ucontext_t *)(((uintptr_t)u->uc_mcontext.sp - KBI_UC_BYTES) & -(uintptr_t)64);

	memcpy(copy, u, KBI_UC_BYTES);
	return copy;
}

static inline void kbi_uc_begin(ucontext_t *u, void (*fn)(void), void (*start)(void), int n)
{
	uintptr_t top = (uintptr_t)u->uc_stack.ss_sp + u->uc_stack.ss_size;
	size_t more = n > KBI_UC_ARGUMENTS ? (size_t)(n - KBI_UC_ARGUMENTS) : 0;

	u->uc_mcontext.sp = (top - more * sizeof(uintptr_t)) & -(uintptr_t)16;
	u->uc_mcontext.pc = (uintptr_t)fn;
	u->uc_mcontext.regs[19] = (uintptr_t)u->uc_link;
	u->uc_mcontext.regs[29] = 0;
	u->uc_mcontext.regs[30] = (uintptr_t)start;
}

static inline void kbi_uc_argument(ucontext_t *u, int i, long value)
{
	if (i < KBI_UC_ARGUMENTS)
		u->uc_mcontext.regs[i] = (unsigned long)value;
	else
		((long *)(uintptr_t)u->uc_mcontext.sp)[i - KBI_UC_ARGUMENTS] = value;
}

#endif
