/* arch/x86_64/ctx.c - the first frame of a new context; start, slow path and descriptors of the
 * thread pointer.
 * Callers: core, libc. Runs on the caller's stack; the new stack is only written to. No locks.
 * Contract in arch/arch.h. */
#include "arch/arch.h"

#include <cpuid.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum { HWCAP2_FSGSBASE = 1 << 1, SET_FS = 0x1002 /* ARCH_SET_FS: musl has no asm/prctl.h */,
	STACK_ALIGN = 16 };

struct kbi_ctx_frame {
	uint64_t rbp, rip;
	/* only in a new context */
	uint64_t entry, arg;
	uint32_t mxcsr;
	uint16_t fcw;
	uint16_t unused;
	uint64_t unused2;
};

#define AT(field, offset) _Static_assert(offsetof(struct kbi_ctx_frame, field) == (offset), #field)
AT(rbp, KBI_FRAME_RBP);
AT(rip, KBI_FRAME_RIP);
AT(mxcsr, KBI_FRAME_MXCSR);
AT(fcw, KBI_FRAME_FCW);
AT(entry, KBI_FRAME_ENTRY);
AT(arg, KBI_FRAME_ARG);
_Static_assert(sizeof(struct kbi_ctx_frame) == KBI_FRAME_NEW_SIZE, "frame size");

KBI_HIDDEN void kbi_ctx_start(void); /* ctx.S */

bool kbi_tp_fast;

/* Makes a context. The new thread inherits the floating-point environment of its creator (POSIX
 * pthread_create). */
void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	uintptr_t top = ((uintptr_t)stack_low + size) & -(uintptr_t)STACK_ALIGN;
	/* The stack is aligned at the end of the two words that each context has. */
	struct kbi_ctx_frame *f = (struct kbi_ctx_frame *)(top - KBI_FRAME_NEW_SIZE);

	f->rbp = 0;
	f->rip = (uint64_t)(uintptr_t)kbi_ctx_start;
	f->entry = (uint64_t)(uintptr_t)entry;
	f->arg = (uint64_t)(uintptr_t)arg;
	__asm__ volatile("stmxcsr %0" : "=m"(f->mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(f->fcw));
	c->sp = f;
}

void kbi_tp_init(bool allow_fast)
{
	kbi_tp_fast = allow_fast && (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE);
}

/* Sets FS by a raw system call: libc's wrapper may write errno, a TLS variable, while the thread
 * pointer changes. */
KBI_NOINLINE void kbi_tp_set_by_kernel(void *tp)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"((long)SYS_arch_prctl), "D"((long)SET_FS), "S"(tp)
			 : "rcx", "r11", "memory");
	if (kbi_unlikely(result != 0))
		__builtin_trap(); /* The address is not canonical: no thread can continue. */
}

/* A data segment, writable, from `base` to 4 GiB (Intel SDM volume 3, 3.4.5). In 64-bit mode only
 * the base counts. */
struct descriptor {
	uint32_t index, base, limit, flags;
};
enum {
	LDT_WRITE = 1,
	/* as in asm/ldt.h, which musl lacks */
	LDT_32BIT = 1, LDT_LIMIT_IN_PAGES = 1 << 4, LDT_USEABLE = 1 << 6,
	LDT_PAGES = 0xfffff,
	SELECTOR_SHIFT = 3, SELECTOR_LDT = 4, SELECTOR_USER = 3,
	/* the first four letters of the vendor */
	AUTHENTIC_AMD = 0x68747541, HYGON_GENUINE = 0x6f677948,
};

unsigned kbi_tp_segment_make(unsigned index, void *tp)
{
	struct descriptor d = { .index = index, .base = (uint32_t)(uintptr_t)tp, .limit = LDT_PAGES,
				.flags = LDT_32BIT | LDT_LIMIT_IN_PAGES | LDT_USEABLE };
	long result;

	/* raw, as in kbi_tp_set_by_kernel */
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"((long)SYS_modify_ldt), "D"((long)LDT_WRITE), "S"(&d), "d"(sizeof d)
			 : "rcx", "r11", "memory");
	/* the kernel returns an int */
	return (int)result == 0 ? index << SELECTOR_SHIFT | SELECTOR_LDT | SELECTOR_USER : 0;
}

/* Returns true on AMD's processors, where a write of the FS base takes 12 to 15 ns and waits for
 * all instructions in flight (doc/why/switch.md), and where FSGSBASE is missing. */
bool kbi_tp_segment_pays(void)
{
	unsigned max, b, c, d;

	if (!kbi_tp_fast)
		return true;
	if (!__get_cpuid(0, &max, &b, &c, &d))
		return false;
	return b == AUTHENTIC_AMD || b == HYGON_GENUINE;
}
