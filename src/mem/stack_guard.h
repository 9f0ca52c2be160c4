/* mem/stack_guard.h - the page below a stack that must not be touched: by the kernel's guard markers where it has them,
 * else by mprotect (option guard). Callers: stack. Calls os. */
#ifndef KBI_STACK_GUARD_H
#define KBI_STACK_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds out what this machine can do; once. */
void kbi_stack_guard_setup(void);
/* Are there guards at all? */
bool kbi_stack_guard_any(void);
/* False: no guard there, the kernel's mappings are short, or none is wanted. */
bool kbi_stack_guard(char *page);
/* The lowest pages of n stacks of a new mapping, in every process. */
void kbi_stack_guard_chunk(char *p, size_t each, uint32_t n);

#endif
