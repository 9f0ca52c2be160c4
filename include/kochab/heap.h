/* kochab/heap.h - Kochab's allocator, libkochab-malloc.so: preloaded, linked, or chosen by `kochab
 * run --malloc kochab`. The library defines malloc and its family; this header gives its
 * statistics. */
#ifndef KOCHAB_HEAP_H
#define KOCHAB_HEAP_H

#include <stddef.h>

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the heap's statistics as JSON: bytes mapped, in slabs, in large blocks, kept, returned;
 * owners; each size class. Writes at most `size` bytes with a terminating zero and returns the
 * length of the whole text. "{}" where the program uses another malloc. Does not allocate; not for
 * signal handlers; never suspends. */
KB_API size_t kb_heap_stats_json(char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
