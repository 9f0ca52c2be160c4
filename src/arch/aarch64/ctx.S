/* arch/aarch64/ctx.S - saves the callee-saved state on this stack, loads the state of the next
 * stack, continues there.
 *
 * The stack of a suspended context, from its stack pointer up (offsets in ctx.h):
 *
 *      sp ->  0  x19 x20        80  x29, x30 = where to continue
 *            16  x21 x22        96  d8  d9
 *            32  x23 x24       112  d10 d11
 *            48  x25 x26       128  d12 d13
 *            64  x27 x28       144  d14 d15
 *                              160  fpcr fpsr
 *                              176  the caller's stack pointer, 16-byte aligned
 *
 * AAPCS64 makes only the low halves of v8-v15 callee-saved. FPCR and FPSR are not callee-saved, but
 * they belong to the thread (C11 7.6): the switch saves them and writes them only when they differ.
 * `after` is entered by a branch with x30 set, so that its return continues in the context. The
 * code touches no TLS, and nothing of the old stack after sp has moved. The CFI is right at every
 * instruction. */
#include "ctx.h"

	.text

	.macro save_pair a, b, at
	stp	\a, \b, [sp, #\at]
	.cfi_rel_offset \a, \at
	.cfi_rel_offset \b, \at + 8
	.endm

	.macro load_pair a, b, at
	ldp	\a, \b, [sp, #\at]
	.cfi_restore \a
	.cfi_restore \b
	.endm

	.macro each_pair do
	\do	x19, x20, KBI_FRAME_X19
	\do	x21, x22, KBI_FRAME_X21
	\do	x23, x24, KBI_FRAME_X23
	\do	x25, x26, KBI_FRAME_X25
	\do	x27, x28, KBI_FRAME_X27
	\do	x29, x30, KBI_FRAME_X29
	\do	d8, d9, KBI_FRAME_D8
	\do	d10, d11, KBI_FRAME_D10
	\do	d12, d13, KBI_FRAME_D12
	\do	d14, d15, KBI_FRAME_D14
	.endm

	.macro place_pair a, b, at
	.cfi_rel_offset \a, \at
	.cfi_rel_offset \b, \at + 8
	.endm

/* sp is at a frame; x9 and x10 are the current fpcr and fpsr. Leaves sp where it was before the
 * frame was saved. */
	.macro load_frame
	ldp	x11, x12, [sp, #KBI_FRAME_FPCR]
	cmp	x11, x9
	b.eq	.Lfpcr\@
	msr	fpcr, x11
.Lfpcr\@:
	cmp	x12, x10
	b.eq	.Lfpsr\@
	msr	fpsr, x12
.Lfpsr\@:
	each_pair load_pair
	add	sp, sp, #KBI_FRAME_SIZE
	.cfi_def_cfa_offset 0
	.endm

/* void kbi_ctx_switch(x0 save, x1 load, x2 after, x3 arg) */
	.globl	kbi_ctx_switch
	.hidden	kbi_ctx_switch
	.type	kbi_ctx_switch, %function
	.p2align 6
kbi_ctx_switch:
	.cfi_startproc
	hint	#34 /* bti c */
	sub	sp, sp, #KBI_FRAME_SIZE
	.cfi_def_cfa_offset KBI_FRAME_SIZE
	each_pair save_pair
	mrs	x9, fpcr
	mrs	x10, fpsr
	stp	x9, x10, [sp, #KBI_FRAME_FPCR]
	mov	x11, sp
	str	x11, [x0]
	ldr	x11, [x1]
	mov	sp, x11
	load_frame
	cbnz	x2, 1f
	ret
1:	mov	x0, x3
	mov	x16, x2
	br	x16
	.cfi_endproc
	.size	kbi_ctx_switch, . - kbi_ctx_switch

/* void kbi_ctx_leave(x0 load, x1 after, x2 arg) */
	.globl	kbi_ctx_leave
	.hidden	kbi_ctx_leave
	.type	kbi_ctx_leave, %function
	.p2align 6
kbi_ctx_leave:
	.cfi_startproc
	hint	#34 /* bti c */
	mrs	x9, fpcr
	mrs	x10, fpsr
	ldr	x11, [x0]
	mov	sp, x11
	.cfi_def_cfa_offset KBI_FRAME_SIZE
	each_pair place_pair
	load_frame
	cbnz	x1, 1f
	ret
1:	mov	x0, x2
	mov	x16, x1
	br	x16
	.cfi_endproc
	.size	kbi_ctx_leave, . - kbi_ctx_leave

/* A new context starts here: x19 = entry, x20 = its argument. entry sees a null return address. The
 * nop is for unwinders that look one instruction before a return address. */
	.cfi_startproc
	.cfi_undefined x30
	nop
	.globl	kbi_ctx_start
	.hidden	kbi_ctx_start
	.type	kbi_ctx_start, %function
kbi_ctx_start:
	mov	x0, x20
	mov	x16, x19
	mov	x30, xzr
	br	x16
	.cfi_endproc
	.size	kbi_ctx_start, . - kbi_ctx_start

/* kbi_ctx_call_on(stack_high, fn, arg): x29 holds the old stack, for the return and for
 * unwinders. */
	.globl	kbi_ctx_call_on
	.hidden	kbi_ctx_call_on
	.type	kbi_ctx_call_on, %function
kbi_ctx_call_on:
	.cfi_startproc
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov	x29, sp
	.cfi_def_cfa_register 29
	and	x9, x0, #-16
	mov	sp, x9
	mov	x0, x2
	blr	x1
	mov	sp, x29
	.cfi_def_cfa_register sp
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	kbi_ctx_call_on, . - kbi_ctx_call_on

#ifdef __ARM_FEATURE_BTI_DEFAULT
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 1, 0 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI */
#endif
	.section .note.GNU-stack, "", %progbits
