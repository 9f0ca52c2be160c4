/* os/maps.h - the mappings of the process, as the kernel lists them in /proc/self/maps.
 * Uses no function of libc's: its callers move memory that libc works with.
 * Callers: os/memory, os/memory_leave, libc/emulate_lock, libc/emulate_map, libc/emulate_owned,
 * libc/emulate_private, mem/stack_code, core/process_fork, posix/futex. */
#ifndef KBI_MAPS_H
#define KBI_MAPS_H

#include "base/base.h"

struct kbi_maps_line {
	uintptr_t from, to;
	uint64_t offset, inode; /* inode 0: no file */
	uint8_t protection;
	bool shared, stack;
	bool kernels;           /* pages of the kernel in the process: [vdso] and similar */
};

enum { KBI_MAPS_TEXT = 1 << 22 }; /* room for the whole text */

/* Reads the whole text and adds a 0. Returns 0, or errno; E2BIG: it is longer than size. */
int kbi_maps_read(char *text, size_t size);
/* Returns true if the caller may read the list; the process may have been shut out of /proc. */
bool kbi_maps_may_read(void);
/* Reads a line. Returns the next line, or NULL if there was no line left. */
const char *kbi_maps_next(const char *text, struct kbi_maps_line *m);
/* Calls fn for each mapping with its name, if any, and the kernel's two-letter flags from
 * /proc/self/smaps, " rd wr ". Returns 0, or errno. */
int kbi_maps_each(
	void (*fn)(const struct kbi_maps_line *m, const char *name, const char *flags, void *arg),
	void *arg);
/* Finds the mapping that contains `at`; does not set stack and kernels. Returns 0, ENOENT, or
 * errno. */
int kbi_maps_find(uintptr_t at, struct kbi_maps_line *m);

#endif
