/* os/plant.h - a function that cannot be interrupted for good is to come by here when it returns: where to it returns is
 * put aside, and on the stack is written that it returns to us. It does, what it was asked for is looked at, and it
 * goes on where it wanted to. Unwinders, debuggers and whoever jumps over it never notice. x86-64 without a shadow stack.
 * Callers: core/quantum, core/thread, os/crash, posix/fork. Runs in handlers. */
#ifndef KBI_PLANT_H
#define KBI_PLANT_H

#include "base/atom.h"

/* Once, by main: where main's stack is. */
void kbi_plant_learn(void);
/* Is that on main's stack, or is not known where that is? */
bool kbi_plant_is_on_main(uintptr_t sp);
/* By a handler that nothing interrupts, on the stack of `bytes` from `low`; 0: main's. `slot` is where the interrupted
 * function's return address is. One owner's are forgotten together. False: it cannot be done now. */
bool kbi_plant(const void *owner, uintptr_t *slot, uintptr_t low, size_t bytes);
/* A kernel thread and the signal that is sent to it, by whom it is; 0: none. In two registers: the assembler knows it. */
struct kbi_plant_signal {
	uint32_t tid, sig;
	uint64_t pid; /* of its process; 0: it is one by itself */
};
/* Asked when the function returns, with its results in the registers but for the general ones, and the first two for
 * vectors: no floating point. */
extern KBI_HIDDEN struct kbi_plant_signal (*kbi_plant_asks)(void);
/* Where that signal comes in, an address in the code; 0: not on this machine. */
uintptr_t kbi_plant_place(void);

/* Where such a function returns to, as unwinders see it: no frame of anybody's. */
bool kbi_plant_is_door(uintptr_t at);

/* None of the owner's will return any more. */
void kbi_plant_forget_those(const void *owner);
extern KBI_HIDDEN a32 kbi_plant_in_use; /* how many places are taken */
static inline void kbi_plant_forget(const void *owner)
{
	if (kbi_unlikely(!a_zero32_rlx(&kbi_plant_in_use)))
		kbi_plant_forget_those(owner);
}
/* In the child of fork: there is nobody else. */
void kbi_plant_forget_others(const void *owner);

#endif
