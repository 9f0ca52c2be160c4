/* mem/heap_door.h - how the runtime and libkochab-malloc.so find each other; each of the two
 * libraries works without the other. The allocator keeps the current owner (the record of free
 * blocks that a kernel thread allocates from) in a word of TLS, the slot. A lightweight thread with
 * TLS of its own has a slot of its own, which must hold the owner of the kernel thread that runs
 * it: each switch to such a thread writes the slot (core/run). A signal handler never switches away
 * from the allocator's code: libc/context gets its address from here.
 *
 * Callers: core; posix/malloc (the struct only). Takes no lock, never switches. Constant after
 * kbi_door_find. */
#ifndef KBI_HEAP_DOOR_H
#define KBI_HEAP_DOOR_H

#include "base/base.h"

struct kbi_memory_region;
struct kbi_sys_from;

enum { KBI_DOOR_VERSION = 4 };

/* The table that libkochab-malloc.so's kb_heap_door() returns. */
struct kbi_door {
	uint32_t version;
	void *slot;           /* the slot of the calling kernel thread */
	void *none;           /* the slot's value before the first allocation */
	/* called on the kernel thread's own TLS: the value of all slots while it runs them */
	void *(*here)(void);
	/* the calling thread's TLS (main's) no longer belongs to its kernel thread, and ends before
	 * it */
	void (*stays)(void);
	/* called by a kernel thread, on its own TLS: nothing else will report its end */
	void (*ends)(void);
	/* where virtual processors are processes (core/process): */
	bool (*region)(struct kbi_memory_region *r); /* false: there is no region */
	/* true: from now on other processes share the program's memory and the region. false: no
	 * process does any more, and only the opened part of the region is left. from: how to get
	 * memory and wait for locks. Called while a single kernel thread runs. */
	void (*shared)(bool is, const struct kbi_sys_from *from);
	/* true takes the allocator's locks, false releases them: in between no other kernel thread
	 * is inside a section that a lock protects, so kernel threads may be ended */
	void (*held)(bool is);
	/* the kernel thread `was` was killed; `now` continues in its place */
	void (*renumber)(uint32_t was, uint32_t now);
	/* reports a fault at this address if the address is the allocator's; async-signal-safe */
	void (*explain)(uintptr_t at);
	size_t (*stats_json)(char *buf, size_t size);
	const void *ehdr;     /* the ELF header in front of the allocator's code */
};

/* Offset of the slot from any thread pointer. Without the library: offset of a word that no code
 * reads. Constant after kbi_door_find. */
extern KBI_HIDDEN ptrdiff_t kbi_door_offset;

/* Looks for the library. Called once, at start, on a kernel thread's own TLS. */
void kbi_door_find(void);
/* Returns the value to write to the slots of threads that the calling kernel thread runs; NULL: no
 * library. */
void *kbi_door_here(void);
/* Tells the allocator that main leaves the calling kernel thread and keeps its TLS. */
void kbi_door_stays(void);
/* Tells the allocator that the calling kernel thread is no longer a virtual processor. */
void kbi_door_ends(void);
/* Makes the allocator's region a part of the memory that is converted for sharing. Returns NULL, or
 * the reason why this is impossible. */
const char *kbi_door_join(void);
/* As in struct kbi_door. */
void kbi_door_shared(bool is);
void kbi_door_held(bool is);
void kbi_door_renumber(int was, int now);
void kbi_door_explain(uintptr_t at);

/* Empties the slot of the control block at tp: a kernel thread made for that purpose will end the
 * block, and frees memory. */
void kbi_door_forget(void *tp);

/* Writes the slot of the thread with thread pointer tp. */
static inline void kbi_door_write(void *tp, void *owner)
{
	*(void **)((char *)tp + kbi_door_offset) = owner;
}

#endif
