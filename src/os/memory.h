/* os/memory.h - the shared space: one memory file, mapped at the same address in every process of a program whose virtual
 * processors are processes. Open reserves it; convert copies what the program has of its own into it and maps it there
 * again, at the addresses it had, shared. From then on all that is written is seen by every process.
 * Callers: core/boot, core/body_process, os/libcall. Calls sys. */
#ifndef KBI_MEMORY_H
#define KBI_MEMORY_H

#include "base/base.h"

/* Reserves it; kbi_sys_map takes from it from now on. 0, or errno: *why says what the machine refuses. Once, at start. */
int kbi_memory_open(const char **why);
/* Before that: what the program has mapped, and touched, can be read, from now until kbi_memory_convert. 0, or EACCES:
 * *why. */
int kbi_memory_is_told(const char **why);
/* The only kernel thread, on a stack and with a TLS block from the space. 0, or errno: *why; the process is as it was or,
 * if it is EFAULT, cannot go on. */
int kbi_memory_convert(const char **why);
/* Addresses that an allocator has reserved for itself, which convert makes shared, too, and accessible, all of them: with a
 * part of the memory file behind the space's. parts: which of them were opened, each between whole pages; what lies
 * between them has no access before, nor in who leaves the space. Called by whoever leaves, on any stack. */
enum { KBI_MEMORY_PARTS = 4 };
struct kbi_memory_part {
	uintptr_t from, to;
};
struct kbi_memory_region {
	uintptr_t from, to; /* whole pages; to 0: there is none */
	void (*parts)(struct kbi_memory_part parts[KBI_MEMORY_PARTS]);
};
/* At most one, before convert. 0, or ENOMEM: a file may not be that long. */
int kbi_memory_add(const struct kbi_memory_region *region);
const struct kbi_memory_region *kbi_memory_added(void);
/* Zeroed whole pages; NULL: none left. Any process, any stack. */
void *kbi_memory_take(size_t bytes);
/* That part of it, if it is free: true. */
bool kbi_memory_take_at(void *p, size_t bytes);
/* A part of what was taken: its memory goes back, its addresses are taken again. */
void kbi_memory_give(void *p, size_t bytes);
/* Its memory goes back, it reads as zero. p: in the part that take gives from, or in an allocator's. */
void kbi_memory_clear(void *p, size_t bytes);
/* The same of a part of the file, wherever that is mapped. */
void kbi_memory_clear_place(size_t place, size_t bytes);
/* Is all of it in the part that take gives from? */
bool kbi_memory_holds(const void *p, size_t bytes);
/* Is all of it in an allocator's? */
bool kbi_memory_is_added(const void *p, size_t bytes);
/* What maps it: the memory file, and where in it p lies. */
int kbi_memory_descriptor(void);
/* Its number on its file system (inode); 0: there is none. */
uint64_t kbi_memory_file(void);
size_t kbi_memory_offset(const void *p);
/* Bytes of addresses reserved; 0: not open. */
size_t kbi_memory_size(void);
/* The part of it that take has ever given from. */
void kbi_memory_used(uintptr_t *from, uintptr_t *to);
/* The calling process is about to end with a core dump: what is in the space goes into it. */
void kbi_memory_dump(void);
/* In a child of fork that has left it: there is none, and no other process of ours. */
void kbi_memory_forget(void);

#endif
