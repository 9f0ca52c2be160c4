/* kochab/heap.h - Kochab's allocator: libkochab-malloc.so, preloaded or linked to, or `kochab run --malloc kochab`.
 * It defines malloc and its family; what it tells of itself is here. */
#ifndef KOCHAB_HEAP_H
#define KOCHAB_HEAP_H

#include <stddef.h>

#include <kochab/kochab.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the heap holds, and has done, as JSON: bytes mapped, in slabs, in large blocks, kept, returned; owners; each size
 * class. Writes at most size bytes with a terminating zero, and returns the length of the whole text. "{}" where the
 * program's malloc is another. Does not allocate; not for signal handlers; never suspends. */
KB_API size_t kb_heap_stats_json(char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
