/* libc/intercept_patch_unwind.h - describes the code that replaces system calls
 * (libc/intercept_patch, libc/intercept_module) to unwinders: cancellation and exceptions that
 * begin in a handler go on through it into the function that made the call.
 * Callers: libc/intercept_patch, libc/intercept_patch_put, libc/intercept_module. Between begin and
 * end a single thread. */
#ifndef KBI_INTERCEPT_PATCH_UNWIND_H
#define KBI_INTERCEPT_PATCH_UNWIND_H

#include "base/base.h"

/* Finds the unwinder. Call once, by a thread that may load libraries. */
void kbi_intercept_patch_unwind_find(void);
/* Allocates a table of `most` entries; false: no memory. */
bool kbi_intercept_patch_unwind_begin(unsigned most);
/* Adds an entry: while the program counter is in from .. from + size, the stack pointer is `below`
 * bytes lower than where the call was made, and the calling function goes on at `back`. */
void kbi_intercept_patch_unwind_add(const uint8_t *from, size_t size, unsigned below,
	const uint8_t *back);
/* Registers the table with the unwinder. */
void kbi_intercept_patch_unwind_end(void);

#endif
