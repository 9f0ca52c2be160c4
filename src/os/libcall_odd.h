/* os/libcall_odd.h - which ranges of the space are not plain memory of it, open for reading and writing: so that they
 * become that again when they are unmapped.
 * Caller: os/libcall_map. */
#ifndef KBI_LIBCALL_ODD_H
#define KBI_LIBCALL_ODD_H

#include "base/base.h"

/* own: memory of the space with another protection; else something else is mapped there. */
void kbi_libcall_odd_note(uintptr_t from, size_t bytes, bool own);
/* Was any of it odd? forget: it is not any more; what of a range lies outside still is. */
bool kbi_libcall_odd_take(uintptr_t from, size_t bytes, bool forget);
/* Memory of the space that has become plain again. */
void kbi_libcall_odd_forget_own(uintptr_t from, size_t bytes);
/* Of the range that begins there; 0: none does. */
size_t kbi_libcall_odd_bytes(uintptr_t from);
/* Is any of it memory of the space with another protection? */
bool kbi_libcall_odd_is_own(uintptr_t at, size_t bytes);

#endif
