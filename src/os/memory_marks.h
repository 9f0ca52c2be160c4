/* os/memory_marks.h - memory that a program's children get in another way (MADV_DONTFORK, MADV_WIPEONFORK). Where virtual
 * processors are processes the kernel must not be told, for they are children to it: the ranges are kept here.
 * Callers: os/libcall_map, os/libcall_owned, core/body_fork. */
#ifndef KBI_MEMORY_MARKS_H
#define KBI_MEMORY_MARKS_H

#include "base/base.h"

enum kbi_memory_mark { KBI_MEMORY_WIPED = 1, KBI_MEMORY_NOT_CHILDS = 2 };

/* The range has the mark from now on, or has it not. 0; ENOMEM: there are too many. */
int kbi_memory_mark(uintptr_t from, size_t bytes, enum kbi_memory_mark mark, bool has);
/* It is no such memory any more. */
void kbi_memory_unmark(uintptr_t from, size_t bytes);
/* In a child whose memory is its own: as the marks say, which are forgotten. */
void kbi_memory_obey_marks(void);

#endif
