/* os/signal_frame.c - moving the frame of a signal handler. Contract in signal_frame.h.
 * The kernel's frame on x86-64, from the handler's first stack pointer up: the return address,
 * which calls sigreturn; context and siginfo, in any order; the floating-point state, to which the
 * context points.
 * The frame on aarch64: the siginfo; the context, which ends with records; further records, to
 * which the last record but one points; a frame record, the first that the handler's frame pointer
 * leads to. The address that calls sigreturn is in a register only.
 * sigreturn finds the frame by the stack pointer only. */
#include "os/signal_frame.h"

#include <ucontext.h>

#if defined(__x86_64__)

enum {
	LEAST = 256,          /* bytes for the handler */
	ALIGNED = 64,         /* alignment of the floating-point state */
	LEGACY = 512,         /* size of the state without extensions */
	TELLS_AT = 464,       /* offset of the mark and the size in the state */
	MARK = 0x46505853,
	MASK_BYTES = 8,       /* the kernel's context ends with the signal mask */
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

/* Copies without a sanitizer's knowledge: it has not seen the kernel's writes either. */
static void copy_frame(uintptr_t to, uintptr_t from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top,
	kbi_signal_frame_handler *fn)
{
	uintptr_t from = kbi_signal_frame_low(info, context), end = frame_high(info, context);
	uintptr_t by = (top - end) & -(uintptr_t)ALIGNED, to = from + by;
	ucontext_t *uc = (ucontext_t *)((uintptr_t)context + by);

	if (to < low + LEAST || to > top)
		return;
	copy_frame(to, from, end - from);
	if (uc->uc_mcontext.fpregs)
		uc->uc_mcontext.fpregs = (fpregset_t)((uintptr_t)uc->uc_mcontext.fpregs + by);
	__asm__ volatile("movq %0, %%rsp\n\tmovq %1, %%rbp\n\tjmp *%%rax"
			 :
			 : "c"(to), "r"(uc->uc_mcontext.gregs[REG_RBP]), "a"(fn), "D"(info->si_signo),
			   "S"((uintptr_t)info + by), "d"(uc)
			 : "memory");
	__builtin_unreachable();
}

#elif defined(__aarch64__)

enum {
	LEAST = 256, /* bytes for the handler */
	ALIGNED = 16,
	RECORD = 16, /* frame pointer and return address of the interrupted code */
	CONTEXT_END = 0,
	MORE = 0x45585401, /* EXTRA_MAGIC */
};

/* A record of the context. */
struct record {
	uint32_t magic, size;
	uint64_t data;       /* record MORE: address of the further records */
	uint32_t data_bytes; /* record MORE: their size */
};

/* A copy of the kernel's trampoline, by whose code unwinders and debuggers recognise a signal
 * frame. They look at the preceding instruction, too, which must not belong to a function. */
KBI_HIDDEN void kbi_signal_frame_return(void);
__asm__("\t.text\n\t.p2align 4\n\tnop\n\t.globl\tkbi_signal_frame_return\n"
	"\t.hidden\tkbi_signal_frame_return\n"
	"\t.type\tkbi_signal_frame_return, %function\nkbi_signal_frame_return:\n"
	"\tmov\tx8, #139\n\tsvc\t#0\n\t.size\tkbi_signal_frame_return, . - kbi_signal_frame_return\n");

bool kbi_signal_frame_moves(void)
{
	return true;
}

uintptr_t kbi_signal_frame_low(const siginfo_t *info, const void *context)
{
	(void)context;
	return (uintptr_t)info;
}

uintptr_t kbi_signal_frame_interrupted(const void *context)
{
	return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.sp;
}

/* Returns the record that points to further records, or NULL. */
static struct record *find_more_record(ucontext_t *uc)
{
	char *at = (char *)uc->uc_mcontext.__reserved, *end = at + sizeof(uc->uc_mcontext.__reserved);
	struct record *r = (struct record *)at;

	for (; at + sizeof(*r) <= end && r->magic != CONTEXT_END && r->size; r = (struct record *)at) {
		if (r->magic == MORE)
			return r;
		at += r->size;
	}
	return NULL;
}

/* Returns the address of the frame record, which ends the frame. */
static uintptr_t frame_record(ucontext_t *uc)
{
	const struct record *r = find_more_record(uc);
	uintptr_t end = (uintptr_t)(uc + 1), rest = r ? (uintptr_t)r->data + r->data_bytes : 0;

	return ((rest > end ? rest : end) + ALIGNED - 1) & -(uintptr_t)ALIGNED;
}

/* Copies without a sanitizer's knowledge: it has not seen the kernel's writes either. */
static void copy_frame(uintptr_t to, uintptr_t from, uintptr_t end)
{
	uint64_t a, b;

	while (from < end)
		__asm__ volatile("ldp %2, %3, [%0], #16\n\tstp %2, %3, [%1], #16"
				 : "+r"(from), "+r"(to), "=&r"(a), "=&r"(b)
				 :
				 : "memory");
}

void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top,
	kbi_signal_frame_handler *fn)
{
	uintptr_t from = (uintptr_t)info, record = frame_record(context), end = record + RECORD;
	uintptr_t by = (top - end) & -(uintptr_t)ALIGNED, to = from + by;
	ucontext_t *uc = (ucontext_t *)((uintptr_t)context + by);
	struct record *more;

	if (to < low + LEAST || to > top)
		return;
	copy_frame(to, from, end);
	more = find_more_record(uc);
	if (more)
		more->data += by;
	{
		register int sig __asm__("x0") = info->si_signo;
		register uintptr_t what __asm__("x1") = to;
		register ucontext_t *where __asm__("x2") = uc;
		register kbi_signal_frame_handler *go __asm__("x16") = fn;

		__asm__ volatile("mov sp, %0\n\tmov x29, %1\n\tmov x30, %2\n\tbr %3"
				 :
				 : "r"(to), "r"(record + by), "r"(kbi_signal_frame_return), "r"(go), "r"(sig),
				   "r"(what), "r"(where)
				 : "memory");
	}
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

void kbi_signal_frame_move(siginfo_t *info, void *context, uintptr_t low, uintptr_t top,
	kbi_signal_frame_handler *fn)
{
	(void)info, (void)context, (void)low, (void)top, (void)fn;
}

#endif
