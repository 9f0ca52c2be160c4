/* libc/intercept_patch_function.h - reads a function's code from its beginning, instruction by
 * instruction: is a pair of bytes that looks like a system call really such an instruction, and
 * which call is it? x86-64.
 * Callers: libc/intercept_patch, libc/intercept_module. Async-signal-safe; no locks, no switch. */
#ifndef KBI_INTERCEPT_PATCH_FUNCTION_H
#define KBI_INTERCEPT_PATCH_FUNCTION_H

#include "libc/intercept_patch_code.h"

/* Returns the bytes of the instruction at p; 0: not known. Reads at most 15 bytes. */
unsigned kbi_intercept_patch_length(const uint8_t *p);
/* Returns the beginning of the function that contains `at`, by the module's table for unwinders
 * (PT_GNU_EH_FRAME; NULL: no table); NULL: not in the table. */
const uint8_t *kbi_intercept_patch_function(const void *table, const uint8_t *at);
/* Reads from `from`, where an instruction begins, to s->at. Returns false if the bytes at s->at are
 * a part of another instruction. Sets *nr to the call's number as far as constants could be
 * followed through registers; -1: not known. If s->before is 0, or no instruction begins there,
 * fills in *s: the code that may move with the call, if any may. If an instruction on the way is
 * not known, returns true and fills in nothing. */
bool kbi_intercept_patch_read(const uint8_t *from, struct kbi_intercept_site *s, long *nr);

#endif
