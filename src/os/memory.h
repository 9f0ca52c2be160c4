/* os/memory.h - the shared space: a memory file, mapped at one address in every process of a
 * program whose virtual processors are processes. kbi_memory_open reserves it. kbi_memory_convert
 * copies the program's own memory into it and maps the copies at their old addresses, shared. From
 * then on every process sees all writes.
 * Callers: libc/emulate and its parts, os/memory_leave, mem, core, io/own, posix/futex. */
#ifndef KBI_MEMORY_H
#define KBI_MEMORY_H

#include "base/base.h"

/* Reserves the space; kbi_sys_map takes memory from it from now on. Returns 0, or errno; *why then
 * says what the machine refuses. Call once, at start. */
int kbi_memory_open(const char **why);
/* Call before kbi_memory_open: makes sure that the list of mappings and of touched pages can be
 * read until kbi_memory_convert. Returns 0, or EACCES and *why. */
int kbi_memory_is_told(const char **why);
/* Shares the program's memory. The caller is the only kernel thread, on a stack and with a TLS
 * block from the space. Returns 0, or errno and *why. The process is then unchanged, or, after
 * EFAULT, cannot continue. */
int kbi_memory_convert(const char **why);
/* Addresses that an allocator has reserved for itself. kbi_memory_convert makes all of them shared
 * and accessible, with a part of the memory file behind the space. parts() tells which ranges were
 * opened, each between whole pages; addresses between them have no access before, nor in a process
 * that has left the space. A leaving process calls parts() on any stack. */
enum { KBI_MEMORY_PARTS = 4 };
struct kbi_memory_part {
	uintptr_t from, to;
};
struct kbi_memory_region {
	uintptr_t from, to; /* whole pages; to 0: no region */
	void (*parts)(struct kbi_memory_part parts[KBI_MEMORY_PARTS]);
};
/* Adds a region; at most one, before kbi_memory_convert. Returns 0, or ENOMEM: the file may not be
 * that long. */
int kbi_memory_add(const struct kbi_memory_region *region);
const struct kbi_memory_region *kbi_memory_added(void);
/* Returns zeroed whole pages; NULL: none left. Any process, any stack. */
void *kbi_memory_take(size_t bytes);
/* Takes these addresses of the space. Returns true if they were free. */
bool kbi_memory_take_at(void *p, size_t bytes);
/* Returns a part of taken memory to the kernel; its addresses can be taken again. */
void kbi_memory_give(void *p, size_t bytes);
/* Returns the memory to the kernel; it reads as zero then. p: in the range that kbi_memory_take
 * gives from, or in an allocator's region. */
void kbi_memory_clear(void *p, size_t bytes);
/* Clears a part of the file like kbi_memory_clear, wherever it is mapped. */
void kbi_memory_clear_place(size_t place, size_t bytes);
/* Returns true if all of it is in the range that kbi_memory_take gives from. */
bool kbi_memory_holds(const void *p, size_t bytes);
/* Returns true if all of it is in an allocator's region. */
bool kbi_memory_is_added(const void *p, size_t bytes);
/* kbi_memory_descriptor returns the memory file, kbi_memory_offset the place of p in it. */
int kbi_memory_descriptor(void);
/* Returns its inode number; 0: there is none. */
uint64_t kbi_memory_file(void);
size_t kbi_memory_offset(const void *p);
/* Returns the number of bytes of addresses reserved; 0: not open. */
size_t kbi_memory_size(void);
/* Returns the part of the space that kbi_memory_take has ever given from. */
void kbi_memory_used(uintptr_t *from, uintptr_t *to);
/* Call when the process is about to end with a core dump: includes the contents of the space in the
 * dump. */
void kbi_memory_dump(void);
/* Call in a child of fork that has left the space: there is no space and no other process of
 * ours. */
void kbi_memory_forget(void);

#endif
