/* arch/arch.h - the machine in six words: make a context, switch, leave, relax, ticks, thread
 * pointer. One folder per machine holds the same files (ctx.h ctx.S ctx.c cpu.h); `generic` is
 * portable C (ucontext) and serves every machine without a folder of its own.
 * Callers: core (switching), os (thread pointer), mem nobody. Runs on the caller's stack.
 *
 * A context is one word: the stack pointer below which the callee-saved state lies (generic: the
 * address of its record). struct kbi_ctx { void *sp; }.
 *
 *   void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size, void (*entry)(void *), void *arg)
 *        c becomes a context that, when first switched to, calls entry(arg) on the given stack, with
 *        the stack 16-byte aligned as the ABI asks at a function's entry and a null return address
 *        (unwinders stop there). entry never returns. Uses nothing above stack_low + size.
 *   void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *), void *arg)
 *        saves the caller's callee-saved registers (and FP control words where the ABI makes them
 *        callee-saved), loads `load`, and, if after is not NULL, calls after(arg) on the stack just
 *        loaded before it continues there, with the FP control words of one or the other. Returns when
 *        somebody switches to `save`. after must not switch. Nothing about the old context may be published before
 *        after runs.
 *   kbi_ctx_switch_bare: the same, returns save, which the caller need not keep for that, and FP control words may be
 *        left as they are (KBI_CTX_BARE 1): for threads that do not own them; uint64_t kbi_fp_get(void) and
 *        kbi_fp_set(uint64_t) keep them for those that do.
 *   kbi_ctx_switch_keeping(save, load, &a, &b): kbi_ctx_switch_bare without `after`; a and b, pointers, are the same
 *        afterwards, and kept by the switch itself where that is cheaper.
 *   void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg)   noreturn
 *        the same without saving: the old stack may be reused by after.
 *   kbi_ctx_switch_new(save, stack_low, size, entry, arg): kbi_ctx_make and kbi_ctx_switch_bare to it in one; nothing
 *        is loaded but the stack pointer, so FP control words are those of the caller. Returns save likewise.
 *   kbi_ctx_call_on(stack_high, fn, arg): calls fn(arg) on another stack and comes back; unwinders see the caller
 *        below fn. generic: on the caller's own.
 *   void kbi_cpu_relax(void)        pause in a spin loop
 *   uint64_t kbi_cpu_ticks(void)    a cheap monotonic-enough counter of constant rate (TSC, cntvct, rdtime)
 *   void *kbi_tp_get(void) / void kbi_tp_set(void *tp)     the thread pointer (TLS base). KBI_HAVE_TP is
 *        1 where a process may set it in user space at run time, 0 on generic. On x86-64 kbi_tp_init()
 *        looks at AT_HWCAP2 for FSGSBASE and falls back to arch_prctl (kbi_tp_fast tells which).
 *   void kbi_tp_write(void *tp)     kbi_tp_set for who knows that kbi_tp_fast is true
 *   KBI_HAVE_SEGMENTS: 1 where the thread pointer can also be set by the selector of a descriptor that the kernel keeps
 *        for the process (x86-64: its local descriptor table). void kbi_tp_set_segment(unsigned selector);
 *        unsigned kbi_tp_segment_make(unsigned index, void *tp), which lies below 4 GiB: the selector, 0: the kernel has
 *        refused, and errno is as before; bool kbi_tp_segment_pays(void): it is the quicker way here.
 *   KBI_TWICE_CALL(name, before, after, otherwise)   defines the function `name`, which programs see, has no
 *        arguments and returns twice, the second time to a frame that may be gone: it calls void *before(void *back),
 *        which keeps its return address and says which function of that kind to call, gives the int which that
 *        returns, each time, to struct kbi_twice after(long result), and returns that one's `result` to its `back`.
 *        Meanwhile it keeps nothing on the stack. generic: it calls otherwise().
 *   uctx.h, for posix/ucontext. Where KBI_HAVE_UCONTEXT is 1: KBI_UC_CALLS defines libc's getcontext and swapcontext,
 *        which save the registers that a function keeps for its caller, and go on in `got` and `swapped`, which have
 *        the same arguments; `start`, to which the first function of a made context returns, calls `ended` with its
 *        uc_link;
 *        `go` loads a context and goes there; `arrive` calls `arrived` first, below the context, which lies on its own
 *        stack. kbi_uc_copy_below(u): a copy of u on the stack that u is about. kbi_uc_is_kernels(u): of a context
 *        without a mark of ours. kbi_uc_begin(u, fn, start, n), then kbi_uc_argument(u, i, value) n times: makecontext.
 * Which folder: -Isrc/arch/<machine> chosen by the Makefile (uname -m or CROSS), so that
 * "ctx.h" and "cpu.h" are that machine's. KBI_ARCH=generic forces the generic one. */
#ifndef KBI_ARCH_H
#define KBI_ARCH_H

#include "base/base.h"

struct kbi_twice {
	long result;
	void *back;
};

struct kbi_ctx {
	void *sp;
};

#include "cpu.h" /* kbi_cpu_relax, kbi_cpu_ticks, kbi_tp_*, KBI_HAVE_TP */
#ifndef KBI_HAVE_SEGMENTS
#define KBI_HAVE_SEGMENTS 0
static inline void kbi_tp_write(void *tp) { kbi_tp_set(tp); }
static inline void kbi_tp_set_segment(unsigned selector) { (void)selector; }
static inline unsigned kbi_tp_segment_make(unsigned index, void *tp) { return (void)index, (void)tp, 0; }
static inline bool kbi_tp_segment_pays(void) { return false; }
#else
KBI_HIDDEN unsigned kbi_tp_segment_make(unsigned index, void *tp);
KBI_HIDDEN bool kbi_tp_segment_pays(void);
#endif

#include "ctx.h" /* the three context functions, or declarations of them */

KBI_HIDDEN void kbi_ctx_call_on(void *stack_high, void (*fn)(void *), void *arg);

/* Where nothing is won by it, the bare switch is the switch. */
#ifndef KBI_CTX_BARE
#define KBI_CTX_BARE 0
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_bare(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	kbi_ctx_switch(save, load, after, arg);
	return save;
}
#endif
#ifndef KBI_HAVE_FP /* no threads here that own FP control words */
#define kbi_fp_get() 0
#define kbi_fp_set(fp) ((void)(fp))
#endif

/* Where the compiler keeps values as cheaply. */
#ifndef KBI_CTX_KEEPING
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_keeping(struct kbi_ctx *save, struct kbi_ctx *load, void **a, void **b)
{
	(void)a, (void)b;
	return kbi_ctx_switch_bare(save, load, NULL, NULL);
}
#endif

/* Where a first entry is no cheaper than a frame to load. */
#ifndef KBI_CTX_NEW
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_new(struct kbi_ctx *save, void *stack_low, size_t size, void (*entry)(void *), void *arg)
{
	struct kbi_ctx load;

	kbi_ctx_make(&load, stack_low, size, entry, arg);
	return kbi_ctx_switch_bare(save, &load, NULL, NULL);
}
#endif

#endif
