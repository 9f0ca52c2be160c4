/* libc/endable.c - contract in endable.h.
 * The system call is an instruction between two labels. A thread interrupted at the first label has
 * not begun the call, or the kernel is about to begin the call again: the thread continues at the
 * second label with -EINTR. At the second label the call is over. Runs on any stack, and in
 * handlers. */
#include "libc/endable.h"

#include <errno.h>
#include <ucontext.h>

#include "libc/context.h"
#include "os/sys.h"

#if defined(__x86_64__)
#define KNOWN 1
__asm__(".text\n\t.p2align 4\n\t.globl kbi_endable_call\n\t.hidden kbi_endable_call\n"
	"\t.type kbi_endable_call,@function\n"
	"kbi_endable_call:\n\t.cfi_startproc\n"
	"\tmovq %rdi, %rax\n"
	"\tmovq 40(%rsi), %r9\n"
	"\tmovq 32(%rsi), %r8\n"
	"\tmovq 24(%rsi), %r10\n"
	"\tmovq 16(%rsi), %rdx\n"
	"\tmovq (%rsi), %rdi\n"
	"\tmovq 8(%rsi), %rsi\n"
	"kbi_endable_at:\n\tsyscall\n"
	"kbi_endable_behind:\n\tret\n"
	"\t.cfi_endproc\n\t.size kbi_endable_call, . - kbi_endable_call\n");

static void set_resume_point(ucontext_t *uc, uintptr_t at, long result)
{
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)at;
	uc->uc_mcontext.gregs[REG_RAX] = result;
}
#elif defined(__aarch64__)
#define KNOWN 1
__asm__(".text\n\t.p2align 4\n\t.globl kbi_endable_call\n\t.hidden kbi_endable_call\n"
	"\t.type kbi_endable_call,@function\n"
	"kbi_endable_call:\n\t.cfi_startproc\n\thint #34\n" /* bti c */
	"\tmov x8, x0\n"
	"\tmov x9, x1\n"
	"\tldp x0, x1, [x9]\n"
	"\tldp x2, x3, [x9, #16]\n"
	"\tldp x4, x5, [x9, #32]\n"
	"kbi_endable_at:\n\tsvc #0\n"
	"kbi_endable_behind:\n\tret\n"
	"\t.cfi_endproc\n\t.size kbi_endable_call, . - kbi_endable_call\n");

static void set_resume_point(ucontext_t *uc, uintptr_t at, long result)
{
	uc->uc_mcontext.pc = at;
	uc->uc_mcontext.regs[0] = (unsigned long long)result;
}
#endif

#ifdef KNOWN
extern const char KBI_HIDDEN kbi_endable_at[], kbi_endable_behind[];

bool kbi_endable_is_at(uintptr_t pc)
{
	return pc == (uintptr_t)kbi_endable_at || pc == (uintptr_t)kbi_endable_behind;
}

bool kbi_endable_end(void *ucontext)
{
	uintptr_t pc = kbi_context_at(ucontext);

	if (pc == (uintptr_t)kbi_endable_at)
		set_resume_point(ucontext, (uintptr_t)kbi_endable_behind, -EINTR);
	return kbi_endable_is_at(pc);
}
#else
long kbi_endable_call(long nr, const long a[6])
{
	return kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

bool kbi_endable_is_at(uintptr_t pc)
{
	(void)pc;
	return false;
}

bool kbi_endable_end(void *ucontext)
{
	(void)ucontext;
	return false;
}
#endif
