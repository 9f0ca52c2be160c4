/* mem/heap_hard.h - hardened mode: each block is followed to its last byte by a pattern, and by a word that tells its
 * length and is sealed with a secret; a bit says whether the program has it. A block that is given back is filled and waits
 * before it is given out again. A block that is freed twice, or was none, or was written beyond its end or after it was
 * freed, ends the program with a message that names its class and the caller.
 * Callers: heap, when kbi_owner_hardened. Calls heap_owner, heap_large. */
#ifndef KBI_HEAP_HARD_H
#define KBI_HEAP_HARD_H

#include "base/base.h"

/* The mode begins; before the first block. */
void kbi_hard_setup(void);
void *kbi_hard_take(size_t align, size_t n, const void *caller);
void kbi_hard_give(void *p, const void *caller);
/* What was asked for. */
size_t kbi_hard_bytes(const void *p, const void *caller);

/* Blocks of the calling kernel thread's owner that wait go to the heap. */
void kbi_hard_flush(const void *caller);

#endif
