/* mem/heap_hard.h - hardened mode (option heap=hardened). Behind each block follow a pattern, and a
 * word with the block's length, which is sealed with a secret; a bit tells whether the program has
 * the block. A freed block is filled and waits before it is given out again. A double free, a free
 * of no block, a write beyond a block's end and a write to a freed block end the program with a
 * message that names the block's class and the caller.
 *
 * Callers: heap, when kbi_owner_hardened. `caller` is the return address for messages. Any thread;
 * not signal handlers. Takes the locks of heap_owner and heap_space inside these. Never
 * switches. */
#ifndef KBI_HEAP_HARD_H
#define KBI_HEAP_HARD_H

#include "base/base.h"

/* Begins hardened mode; called before the first block. */
void kbi_hard_setup(void);
/* Returns a block of n bytes at a multiple of align; NULL: no memory. */
void *kbi_hard_take(size_t align, size_t n, const void *caller);
/* Frees the block p; NULL: does nothing. */
void kbi_hard_give(void *p, const void *caller);
/* Returns the length that the program asked for. */
size_t kbi_hard_bytes(const void *p, const void *caller);

/* Gives the waiting blocks of the calling kernel thread's owner to the heap. */
void kbi_hard_flush(const void *caller);

#endif
