/* arch/x86_64/ctx.S - the start of a new context, and a call on another stack. ctx.h draws the
 * frame.
 * Touches no TLS, and nothing of the old stack after rsp has moved. */
#include "ctx.h"

	.text

/* A new context starts here. Its stack is 16-byte aligned, with entry and argument on top. Calls
 * entry, which sees a null return address. The nop is for unwinders that look one byte before a
 * return address. */
	.cfi_startproc
	.cfi_undefined rip
	nop
	.globl	kbi_ctx_start
	.hidden	kbi_ctx_start
	.type	kbi_ctx_start, @function
kbi_ctx_start:
	xorl	%ebp, %ebp
	ldmxcsr	(KBI_FRAME_MXCSR - KBI_FRAME_SIZE)(%rsp)
	fldcw	(KBI_FRAME_FCW - KBI_FRAME_SIZE)(%rsp)
	movq	(%rsp), %rbx
	movq	8(%rsp), %rdi
	pushq	$0
	.cfi_adjust_cfa_offset 8
	jmp	*%rbx
	.cfi_endproc
	.size	kbi_ctx_start, . - kbi_ctx_start

/* kbi_ctx_call_on(stack_high, fn, arg): rbp holds the old stack, for the return and for
 * unwinders. */
	.globl	kbi_ctx_call_on
	.hidden	kbi_ctx_call_on
	.type	kbi_ctx_call_on, @function
kbi_ctx_call_on:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	movq	%rdi, %rsp
	andq	$-16, %rsp
	movq	%rdx, %rdi
	call	*%rsi
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa rsp, 8
	ret
	.cfi_endproc
	.size	kbi_ctx_call_on, . - kbi_ctx_call_on

	.section .note.GNU-stack, "", @progbits
