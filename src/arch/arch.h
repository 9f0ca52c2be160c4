/* arch/arch.h - the machine in six words: make a context, switch, leave, relax, ticks, thread
 * pointer. Each machine has a folder with the same files (ctx.h ctx.S ctx.c cpu.h). The folder
 * `generic` is portable C (ucontext) and serves every machine without a folder.
 * Callers: core (switching), libc (thread pointer). Runs on the caller's stack.
 *
 * A context is one word: the stack pointer above which the callee-saved state lies (generic: the
 * address of its record). struct kbi_ctx { void *sp; }.
 *
 *   void kbi_ctx_make(struct kbi_ctx *c, void *stack_low, size_t size,
 *                     void (*entry)(void *), void *arg)
 *     Makes c a context that calls entry(arg) on the given stack when it is first switched to.
 *     The stack is then 16-byte aligned, as the ABI requires at the entry of a function, and the
 *     return address is null (unwinders stop there). entry never returns. Uses nothing above
 *     stack_low + size.
 *   void kbi_ctx_switch(struct kbi_ctx *save, struct kbi_ctx *load,
 *                       void *(*after)(void *), void *arg)
 *     Saves the caller's callee-saved registers (and FP control words where the ABI makes them
 *     callee-saved) and loads `load`. If after is not NULL, calls after(arg) on the loaded stack
 *     before `load` continues there; the FP control words are then those of either context.
 *     Returns when a later switch loads `save`. after must not switch. Nothing about the old
 *     context may be published before after runs.
 *   kbi_ctx_switch_bare
 *     kbi_ctx_switch that returns save, so the caller need not keep save across the switch. It
 *     may leave FP control words as they are (KBI_CTX_BARE 1): for threads that do not own them.
 *     uint64_t kbi_fp_get(void) and kbi_fp_set(uint64_t) keep them for threads that do.
 *   kbi_ctx_switch_keeping(save, load, &a, &b)
 *     kbi_ctx_switch_bare without `after`. The pointers a and b keep their values; the switch
 *     itself saves them where that is cheaper.
 *   void kbi_ctx_leave(struct kbi_ctx *load, void *(*after)(void *), void *arg)   noreturn
 *     kbi_ctx_switch without saving: after may reuse the old stack.
 *   kbi_ctx_switch_new(save, stack_low, size, entry, arg)
 *     kbi_ctx_make, then kbi_ctx_switch_bare to the new context. Loads only the stack pointer, so
 *     the FP control words stay the caller's. Returns save as kbi_ctx_switch_bare does.
 *   kbi_ctx_call_on(stack_high, fn, arg)
 *     Calls fn(arg) on another stack and returns. Unwinders see the caller below fn.
 *     generic: calls fn on the caller's stack.
 *   void kbi_cpu_relax(void)
 *     Pauses in a spin loop.
 *   uint64_t kbi_cpu_ticks(void)
 *     Returns a cheap counter of constant rate that is nearly monotonic (TSC, cntvct, rdtime).
 *   void *kbi_tp_get(void), void kbi_tp_set(void *tp)
 *     Read and write the thread pointer (TLS base). KBI_HAVE_TP is 1 where a process may set it
 *     in user space at run time, 0 on generic. On x86-64 kbi_tp_init() looks for FSGSBASE in
 *     AT_HWCAP2 and falls back to arch_prctl; kbi_tp_fast is true if FSGSBASE is used.
 *   void kbi_tp_write(void *tp)
 *     kbi_tp_set for a caller that knows that kbi_tp_fast is true.
 *   KBI_HAVE_SEGMENTS
 *     1 where the thread pointer can also be set by the selector of a descriptor that the kernel
 *     keeps for the process (x86-64: its local descriptor table):
 *     void kbi_tp_set_segment(unsigned selector) loads the selector.
 *     unsigned kbi_tp_segment_make(unsigned index, void *tp) writes the descriptor; tp is below
 *     4 GiB. Returns the selector, or 0 if the kernel has refused; keeps errno.
 *     bool kbi_tp_segment_pays(void) returns true if a selector is faster on this processor.
 *   KBI_TWICE_CALL(name, before, after, otherwise)
 *     Defines the function `name`, which programs see. It has no arguments and returns twice, the
 *     second time to a frame that may be gone. `name` calls void *before(void *back), which keeps
 *     the return address `back` and returns the function of libc that returns twice. `name` calls
 *     that function and passes each of its int results to struct kbi_twice after(long result).
 *     Then `name` returns the member `result` to the address `back`. Meanwhile `name` keeps
 *     nothing on the stack. generic: `name` calls otherwise().
 *   uctx.h, for posix/ucontext, where KBI_HAVE_UCONTEXT is 1:
 *     KBI_UC_CALLS defines libc's getcontext and swapcontext. They save the registers that a
 *     function keeps for its caller, and continue in `got` and `swapped` with the same arguments.
 *     `start`, to which the first function of a made context returns, calls `ended` with its
 *     uc_link. `go` loads a context and continues there. `arrive` does so, too, but first calls
 *     `arrived` below the context, which lies on its own stack.
 *     kbi_uc_copy_below(u) copies u to the stack that u describes and returns the copy.
 *     kbi_uc_is_kernels(u) returns true if u has no mark of ours.
 *     kbi_uc_begin(u, fn, start, n), then kbi_uc_argument(u, i, value) n times: makecontext.
 *
 * The Makefile chooses the folder by -Isrc/arch/<machine> (uname -m or CROSS), so that "ctx.h" and
 * "cpu.h" are the files of that machine. KBI_ARCH=generic forces the generic folder. */
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
static inline unsigned kbi_tp_segment_make(unsigned index, void *tp)
{
	return (void)index, (void)tp, 0;
}
static inline bool kbi_tp_segment_pays(void) { return false; }
#else
KBI_HIDDEN unsigned kbi_tp_segment_make(unsigned index, void *tp);
KBI_HIDDEN bool kbi_tp_segment_pays(void);
#endif

#include "ctx.h" /* the context functions, or declarations of them */

KBI_HIDDEN void kbi_ctx_call_on(void *stack_high, void (*fn)(void *), void *arg);

/* On machines where a bare switch saves nothing, it is the full switch. */
#ifndef KBI_CTX_BARE
#define KBI_CTX_BARE 0
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_bare(struct kbi_ctx *save, struct kbi_ctx *load, void *(*after)(void *), void *arg)
{
	kbi_ctx_switch(save, load, after, arg);
	return save;
}
#endif
#ifndef KBI_HAVE_FP /* no thread owns FP control words on this machine */
#define kbi_fp_get() 0
#define kbi_fp_set(fp) ((void)(fp))
#endif

/* On machines where the compiler keeps values as cheaply as the switch would. */
#ifndef KBI_CTX_KEEPING
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_keeping(struct kbi_ctx *save, struct kbi_ctx *load, void **a, void **b)
{
	(void)a, (void)b;
	return kbi_ctx_switch_bare(save, load, NULL, NULL);
}
#endif

/* On machines where a first entry is no cheaper than loading a frame. */
#ifndef KBI_CTX_NEW
static inline __attribute__((always_inline)) struct kbi_ctx *
kbi_ctx_switch_new(struct kbi_ctx *save, void *stack_low, size_t size, void (*entry)(void *),
	void *arg)
{
	struct kbi_ctx load;

	kbi_ctx_make(&load, stack_low, size, entry, arg);
	return kbi_ctx_switch_bare(save, &load, NULL, NULL);
}
#endif

#endif
