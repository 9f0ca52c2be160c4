/* libc/return_hook.h - return hooks. A function that must not be left where it was interrupted is
 * made to return to us: its return address on the stack is replaced by the address of a trampoline
 * (a "door") and kept aside. When the function returns, the door evaluates the pending request and
 * then continues at the kept address. Unwinders, debuggers and code that jumps over the frame
 * notice nothing. x86-64 without a shadow stack.
 * Callers: libc/crash_libc, core/quantum, core/thread, core/thread_loss, core/turn, posix/fork,
 * posix/signal_stack. Runs in handlers. */
#ifndef KBI_RETURN_HOOK_H
#define KBI_RETURN_HOOK_H

#include "base/atom.h"

/* Learns the bounds of main's stack. Call once, from main's thread. */
void kbi_return_hook_learn(void);
/* Returns true if sp is on main's stack, or if the bounds of main's stack are unknown. */
bool kbi_return_hook_is_on_main(uintptr_t sp);
/* Places a hook. Call in a handler that no signal interrupts. slot: the place of the interrupted
 * function's return address, on the stack of `bytes` bytes from `low`; bytes 0: main's stack. All
 * hooks of an owner are forgotten together. Returns false if it is impossible now. */
bool kbi_return_hook(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes);
/* The target kernel thread and the signal to send; 0: none. Returned in two registers, which the
 * assembler code knows. */
struct kbi_return_hook_signal {
	uint32_t tid, sig;
	uint64_t pid; /* process of the target; 0: the target is a process by itself */
};
/* Called when the hooked function returns. The results of that function are in registers then; only
 * the general registers and the first two vector registers are saved, so the callee must not use
 * floating point. */
extern KBI_HIDDEN struct kbi_return_hook_signal (*kbi_return_hook_asks)(void);
/* Returns the code address at which that signal arrives; 0: not on this machine. */
uintptr_t kbi_return_hook_place(void);

/* Returns true if a function returns to a door at this address; unwinders see it as a frame of no
 * function. */
bool kbi_return_hook_is_door(uintptr_t at);

/* Forgets all hooks of the owner: none of its functions will return. */
void kbi_return_hook_forget_those(const void *owner);
extern KBI_HIDDEN a32 kbi_return_hook_in_use; /* number of places in use; any thread, atomic */
static inline void kbi_return_hook_forget(const void *owner)
{
	if (kbi_unlikely(!a_zero32_rlx(&kbi_return_hook_in_use)))
		kbi_return_hook_forget_those(owner);
}
/* Call in the child of fork: forgets the hooks of all owners but this, because their threads do not
 * exist. */
void kbi_return_hook_forget_others(const void *owner);

#endif
