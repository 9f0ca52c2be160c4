/* os/memory_marks.h - memory that is treated differently in a program's children (MADV_DONTFORK,
 * MADV_WIPEONFORK). If virtual processors are processes, the kernel must not be told, because to
 * the kernel they are children: the ranges are kept here.
 * Callers: libc/emulate_map, libc/emulate_owned, core/process_fork. */
#ifndef KBI_MEMORY_MARKS_H
#define KBI_MEMORY_MARKS_H

#include "base/base.h"

enum kbi_memory_mark { KBI_MEMORY_WIPED = 1, KBI_MEMORY_NOT_CHILDS = 2 };

/* Sets the mark of the range, or removes it if `has` is false. Returns 0, or ENOMEM: too many
 * ranges. */
int kbi_memory_mark(uintptr_t from, size_t bytes, enum kbi_memory_mark mark, bool has);
/* Removes all marks: the range is no such memory any more. */
void kbi_memory_unmark(uintptr_t from, size_t bytes);
/* Call in a child whose memory is its own: applies the marks, then forgets them. */
void kbi_memory_obey_marks(void);

#endif
