/* mem/heap_door.h - how the runtime and libkochab-malloc.so find each other: two libraries that each work without the
 * other. The allocator keeps which owner allocates in a word of TLS, the slot. A lightweight thread with TLS of its own
 * has a slot of its own, and must find in it what belongs to the kernel thread that runs it: each switch to such a thread
 * writes it (core/run). The allocator's code is never left by a switch from a handler: os/context asks for its address.
 * Callers: core; posix/malloc (the struct only). Constant after kbi_door_find. */
#ifndef KBI_HEAP_DOOR_H
#define KBI_HEAP_DOOR_H

#include "base/base.h"

struct kbi_memory_region;
struct kbi_sys_from;

enum { KBI_DOOR_VERSION = 4 };

/* What libkochab-malloc.so's kb_heap_door() returns. */
struct kbi_door {
	uint32_t version;
	void *slot;           /* the calling kernel thread's */
	void *none;           /* what it holds before the first allocation */
	void *(*here)(void);  /* what all slots hold while it runs them; called on its own TLS */
	void (*stays)(void);  /* the calling thread's TLS, main's, is not the kernel thread's any more, and ends before it */
	void (*ends)(void);   /* the calling kernel thread, on its own TLS: its end will not be told otherwise */
	/* where virtual processors are processes (core/body_process): */
	bool (*region)(struct kbi_memory_region *r); /* false: there is none */
	/* Other processes share the program's memory and the region from now on; or none does any more, and of the region
	 * there is what was opened. from: where memory comes from, how locks wait. One kernel thread runs. */
	void (*shared)(bool is, const struct kbi_sys_from *from);
	void (*held)(bool is); /* in between no other kernel thread is within what a lock protects: they may be ended */
	void (*renumber)(uint32_t was, uint32_t now); /* the kernel thread `was` was killed; `now` goes on in its place */
	void (*explain)(uintptr_t at); /* a fault there is told, if it is the allocator's. In signal handlers */
	size_t (*stats_json)(char *buf, size_t size);
	const void *ehdr;     /* the ELF header in front of its code */
};

/* The slot's place, from any thread pointer: another word that nobody reads if there is no such library. */
extern KBI_HIDDEN ptrdiff_t kbi_door_offset;

/* Once, at start, on a kernel thread's own TLS. */
void kbi_door_find(void);
/* For the kernel thread that calls: what to write. NULL: no library. */
void *kbi_door_here(void);
/* Main leaves the kernel thread that calls, whose TLS it keeps. */
void kbi_door_stays(void);
/* The kernel thread that calls is no virtual processor any more. */
void kbi_door_ends(void);
/* The allocator's region becomes a part of the space when the program's memory is converted. NULL, or why it cannot. */
const char *kbi_door_join(void);
/* See the struct. */
void kbi_door_shared(bool is);
void kbi_door_held(bool is);
void kbi_door_renumber(int was, int now);
void kbi_door_explain(uintptr_t at);

/* The block at tp is to be ended by a kernel thread of its own, which frees memory. */
void kbi_door_forget(void *tp);

static inline void kbi_door_write(void *tp, void *owner)
{
	*(void **)((char *)tp + kbi_door_offset) = owner;
}

#endif
