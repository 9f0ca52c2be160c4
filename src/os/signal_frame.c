/* os/signal_frame.c - moving the frame of a signal handler. Contract in signal_frame.h.
 * The kernel's frame on x86-64, from the handler's first stack pointer up: the address that it returns to, which calls
 * sigreturn; context and what is known of the signal, in any order; the floating-point state, to which the context points.
 * sigreturn finds the frame by the stack pointer, and knows no other place of it. */
#include "os/signal_frame.h"

#include <ucontext.h>

#if defined(__x86_64__)

enum {
	LEAST = 256,          /* bytes for the handler */
	ALIGNED = 64,         /* as the floating-point state must be */
	LEGACY = 512,         /* bytes of that without more */
	TELLS_AT = 464,       /* where in it the kernel says how long it is, behind a mark */
	MARK = 0x46505853,
	MASK_BYTES = 8,       /* the kernel's context ends with them */
};

bool kbi_signal_frame_moves(void)
{
	return true;
}

uintptr_t kbi_signal_frame_low(const siginfo_t *info, const void *context)
{
	uintptr_t a = (uintptr_t)info, b = (uintptr_t)context;

	return (a < b ? a : b) - sizeof(void *);
}

uintptr_t kbi_signal_frame_interrupted(const void *context)
{
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RSP];
}

static size_t bytes_of_state(const void *fpregs)
{
	const uint32_t *tells = (const uint32_t *)((const char *)fpregs + TELLS_AT);

	return tells[0] == MARK && tells[1] > LEGACY ? tells[1] : LEGACY;
}

static uintptr_t frame_high(const siginfo_t *info, const void *context)
{
	const ucontext_t *uc = context;
	uintptr_t high = (uintptr_t)(info + 1), end = (uintptr_t)&uc->uc_sigmask + MASK_BYTES;

	high = end > high ? end : high;
	if (!uc->uc_mcontext.fpregs)
		return high;
	end = (uintptr_t)uc->uc_mcontext.fpregs + bytes_of_state(uc->uc_mcontext.fpregs);
	return end > high ? end : high;
}

/* A sanitizer does not know of it, as of what the kernel writes. */
static void copy(uintptr_t to, uintptr_t from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top, kbi_signal_frame_handler *fn)
{
	uintptr_t from = kbi_signal_frame_low(info, context), end = frame_high(info, context);
	uintptr_t by = (top - end) & -(uintptr_t)ALIGNED, to = from + by;
	ucontext_t *uc = (ucontext_t *)((uintptr_t)context + by);

	if (to < low + LEAST || to > top)
		return;
	copy(to, from, end - from);
	if (uc->uc_mcontext.fpregs)
		uc->uc_mcontext.fpregs = (fpregset_t)((uintptr_t)uc->uc_mcontext.fpregs + by);
	__asm__ volatile("movq %0, %%rsp\n\tmovq %1, %%rbp\n\tjmp *%%rax"
			 :
			 : "c"(to), "r"(uc->uc_mcontext.gregs[REG_RBP]), "a"(fn), "D"(info->si_signo),
			   "S"((uintptr_t)info + by), "d"(uc)
			 : "memory");
	__builtin_unreachable();
}

#else

bool kbi_signal_frame_moves(void)
{
	return false;
}

uintptr_t kbi_signal_frame_low(const siginfo_t *info, const void *context)
{
	(void)context;
	return (uintptr_t)info;
}

uintptr_t kbi_signal_frame_interrupted(const void *context)
{
	(void)context;
	return 0;
}

void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top, kbi_signal_frame_handler *fn)
{
	(void)info, (void)context, (void)low, (void)top, (void)fn;
}

#endif
