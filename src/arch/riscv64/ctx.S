/* arch/riscv64/ctx.S - saves the callee-saved state on this stack, loads the state of the next
 * stack, continues there.
 *
 * The stack of a suspended context, from its stack pointer up (offsets in ctx.h):
 *
 *      sp ->  0  ra = where to continue
 *             8  s0 ... s11
 *           104  fcsr
 *           112  fs0 ... fs11 (absent with the soft-float ABI)
 *           208  the caller's stack pointer, 16-byte aligned
 *
 * The calling convention does not make fcsr callee-saved, but it belongs to the thread (C11 7.6):
 * the switch saves it and writes it only when it differs.
 * `after` is entered by a jump with ra set, so that its return continues in the context. The code
 * touches no TLS, and nothing of the old stack after sp has moved. The CFI is right at every
 * instruction. */
#include "ctx.h"

#ifdef __riscv_float_abi_single
#define FSTORE fsw
#define FLOAD flw
#else
#define FSTORE fsd
#define FLOAD fld
#endif

	.text

	.macro save_word r, at
	sd	\r, \at(sp)
	.cfi_rel_offset \r, \at
	.endm

	.macro load_word r, at
	ld	\r, \at(sp)
	.cfi_restore \r
	.endm

	.macro place_word r, at
	.cfi_rel_offset \r, \at
	.endm

	.macro save_float r, at
	FSTORE	\r, \at(sp)
	.cfi_rel_offset \r, \at
	.endm

	.macro load_float r, at
	FLOAD	\r, \at(sp)
	.cfi_restore \r
	.endm

	.macro each_word do
	\do	ra, KBI_FRAME_RA
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	\do	s\n, KBI_FRAME_S0 + 8 * \n
	.endr
	.endm

	.macro each_float do
#ifndef __riscv_float_abi_soft
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
	\do	fs\n, KBI_FRAME_FS0 + 8 * \n
	.endr
#endif
	.endm

	.macro read_fcsr r
#ifdef __riscv_flen
	frcsr	\r
#endif
	.endm

/* sp is at a frame; t0 is the current fcsr. Leaves sp where it was before the frame was saved. */
	.macro load_frame
#ifdef __riscv_flen
	ld	t1, KBI_FRAME_FCSR(sp)
	beq	t0, t1, .Lfcsr\@
	fscsr	t1
.Lfcsr\@:
#endif
	each_word load_word
	each_float load_float
	addi	sp, sp, KBI_FRAME_SIZE
	.cfi_def_cfa_offset 0
	.endm

/* void kbi_ctx_switch(a0 save, a1 load, a2 after, a3 arg) */
	.globl	kbi_ctx_switch
	.hidden	kbi_ctx_switch
	.type	kbi_ctx_switch, @function
	.p2align 6
kbi_ctx_switch:
	.cfi_startproc
	addi	sp, sp, -KBI_FRAME_SIZE
	.cfi_def_cfa_offset KBI_FRAME_SIZE
	each_word save_word
	each_float save_float
	read_fcsr t0
	sd	t0, KBI_FRAME_FCSR(sp)
	sd	sp, (a0)
	ld	sp, (a1)
	load_frame
	bnez	a2, 1f
	ret
1:	mv	a0, a3
	jr	a2
	.cfi_endproc
	.size	kbi_ctx_switch, . - kbi_ctx_switch

/* void kbi_ctx_leave(a0 load, a1 after, a2 arg) */
	.globl	kbi_ctx_leave
	.hidden	kbi_ctx_leave
	.type	kbi_ctx_leave, @function
	.p2align 6
kbi_ctx_leave:
	.cfi_startproc
	read_fcsr t0
	ld	sp, (a0)
	.cfi_def_cfa_offset KBI_FRAME_SIZE
	each_word place_word
	each_float place_word
	load_frame
	bnez	a1, 1f
	ret
1:	mv	a0, a2
	jr	a1
	.cfi_endproc
	.size	kbi_ctx_leave, . - kbi_ctx_leave

/* A new context starts here: s1 = entry, s2 = its argument. entry sees a null return address. The
 * nop is for unwinders that look one instruction before a return address. */
	.cfi_startproc
	.cfi_undefined ra
	nop
	.globl	kbi_ctx_start
	.hidden	kbi_ctx_start
	.type	kbi_ctx_start, @function
kbi_ctx_start:
	mv	a0, s2
	li	ra, 0
	jr	s1
	.cfi_endproc
	.size	kbi_ctx_start, . - kbi_ctx_start

/* kbi_ctx_call_on(stack_high, fn, arg): s0 holds the old stack, for the return and for
 * unwinders. */
	.globl	kbi_ctx_call_on
	.hidden	kbi_ctx_call_on
	.type	kbi_ctx_call_on, @function
kbi_ctx_call_on:
	.cfi_startproc
	addi	sp, sp, -16
	.cfi_def_cfa_offset 16
	sd	ra, 8(sp)
	.cfi_offset ra, -8
	sd	s0, 0(sp)
	.cfi_offset s0, -16
	addi	s0, sp, 16
	.cfi_def_cfa s0, 0
	andi	sp, a0, -16
	mv	a0, a2
	jalr	a1
	addi	sp, s0, -16
	.cfi_def_cfa sp, 16
	ld	ra, 8(sp)
	ld	s0, 0(sp)
	addi	sp, sp, 16
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size	kbi_ctx_call_on, . - kbi_ctx_call_on

	.section .note.GNU-stack, "", @progbits
