/* os/libsite_function.h - reads a function's code from its beginning, instruction after instruction: is there a system call
 * at a place where the two bytes of a call stand, and which? x86-64. Callers: os/libsite, os/ownsite. Async-signal-safe. */
#ifndef KBI_LIBSITE_FUNCTION_H
#define KBI_LIBSITE_FUNCTION_H

#include "os/libsite_code.h"

/* Bytes of the instruction at p; 0: it is not known. At most 15 bytes are read. */
unsigned kbi_libsite_length(const uint8_t *p);
/* Where the function begins that `at` lies in, by the module's table for unwinders (PT_GNU_EH_FRAME, NULL: none); NULL: it
 * does not say. */
const uint8_t *kbi_libsite_function(const void *table, const uint8_t *at);
/* From `from`, where an instruction begins, to s->at: false, the bytes there are a part of another instruction. *nr: the
 * number that the call has, as far as constants were followed through registers on the way; -1: not known. Where s->before
 * is 0, or no instruction begins there, *s is filled in: the code that may move with the call, if any may. Where an
 * instruction is not known on the way the answer is true, and nothing is filled in. */
bool kbi_libsite_read(const uint8_t *from, struct kbi_libsite_site *s, long *nr);

#endif
