/* os/libsite_unwind.h - tells unwinders how to get through the code that stands for a system call (os/libsite, os/ownsite):
 * cancellation and exceptions that begin in a handler go on in the function that made the call. Callers: these two. */
#ifndef KBI_LIBSITE_UNWIND_H
#define KBI_LIBSITE_UNWIND_H

#include "base/base.h"

/* Once, by a thread that may load libraries. */
void kbi_libsite_unwind_find(void);
/* Room for so many; false: none. */
bool kbi_libsite_unwind_begin(unsigned most);
/* While the program counter is in from .. from + size, the stack pointer is `below` bytes lower than where the call was
 * made, and the call's function goes on at `back`. */
void kbi_libsite_unwind_add(const uint8_t *from, size_t size, unsigned below, const uint8_t *back);
/* Known to unwinders from now on. */
void kbi_libsite_unwind_end(void);

#endif
