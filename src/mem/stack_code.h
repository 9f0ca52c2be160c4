/* mem/stack_code.h - may code run on stacks? As libc has it: what the program and its libraries ask for in PT_GNU_STACK
 * decides, for all stacks, and one that is loaded later may ask, too, where this libc allows that. What the loader has made
 * of it is read from main's stack, whose mapping it changes first.
 * Callers: mem/stack. Calls the loader and os. */
#ifndef KBI_STACK_CODE_H
#define KBI_STACK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does a module that is loaded ask for it? May take the loader's lock. */
bool kbi_stack_code_is_asked(void);
/* May code run on main's stack now? At that address? In handlers, too. */
bool kbi_stack_code_is_given(void);
bool kbi_stack_code_may_run(uintptr_t address);
/* On n stacks of `each` bytes from p on, in all processes of the runtime. */
void kbi_stack_code_let_run(char *p, size_t each, uint32_t n);

#endif
