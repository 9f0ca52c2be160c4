/* libc/emulate_odd.h - table of the "odd" ranges of the space: those that are not plain memory of
 * the space, readable and writable. When they are unmapped they must become plain again.
 * Caller: libc/emulate_map. A lock (os/lock); no switch. */
#ifndef KBI_EMULATE_ODD_H
#define KBI_EMULATE_ODD_H

#include "base/base.h"

/* Notes a range. own: memory of the space with another protection; else something else is mapped
 * there. */
void kbi_emulate_odd_note(uintptr_t from, size_t bytes, bool own);
/* Returns true if any part of the range is odd. forget: that part is no longer odd; parts of a
 * range outside stay odd. */
bool kbi_emulate_odd_take(uintptr_t from, size_t bytes, bool forget);
/* Removes own memory that has become plain again. */
void kbi_emulate_odd_forget_own(uintptr_t from, size_t bytes);
/* Returns the length of the range that begins at `from`; 0: none begins there. */
size_t kbi_emulate_odd_bytes(uintptr_t from);
/* Returns true if any part is memory of the space with another protection. */
bool kbi_emulate_odd_is_own(uintptr_t at, size_t bytes);

#endif
