/* mem/stack_guard.h - makes the guard page below a stack: with the kernel's guard markers
 * (MADV_GUARD_INSTALL) where it has them, else with mprotect (option guard). Callers: mem/stack,
 * mem/stack_make, for any thread. Locks: none. Never switches. */
#ifndef KBI_STACK_GUARD_H
#define KBI_STACK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tests the kernel and chooses the kind of guard. Called once, at start. */
void kbi_stack_guard_setup(void);
/* Returns whether stacks get guards at all. */
bool kbi_stack_guard_any(void);
/* Makes `page` a guard in the calling process. Returns false if it is none: none is wanted, the
 * call failed, or the kernel's mappings are scarce. */
bool kbi_stack_guard(char *page);
/* Makes the lowest page of each of n stacks of `each` bytes from p on a guard, in every process of
 * the runtime. */
void kbi_stack_guard_chunk(char *p, size_t each, uint32_t n);

#endif
