/* mem/stack_code.h - decides whether code may run on stacks. The rule is libc's: PT_GNU_STACK of
 * the program and its libraries decides for all stacks; a library loaded later may ask, too, where
 * this libc allows that. The loader's decision is read from main's stack, because the loader
 * changes that mapping first.
 *
 * Callers: mem/stack, mem/stack_make. Calls the loader, libc and os. Locks: the loader's, where
 * said. Never switches. */
#ifndef KBI_STACK_CODE_H
#define KBI_STACK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether a loaded module asks for executable stacks. May take the loader's lock. */
bool kbi_stack_code_is_asked(void);
/* The first returns whether code may run on main's stack now; the second, at `address`. Also called
 * in signal handlers. */
bool kbi_stack_code_is_given(void);
bool kbi_stack_code_may_run(uintptr_t address);
/* Lets code run on n stacks of `each` bytes from p on, in all processes of the runtime. */
void kbi_stack_code_let_run(char *p, size_t each, uint32_t n);

#endif
