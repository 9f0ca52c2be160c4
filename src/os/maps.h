/* os/maps.h - what is mapped where, as the kernel tells in /proc/self/maps. Uses nothing of libc's: its callers move what
 * libc works with. Callers: os/memory, os/memory_leave, os/libcall_map, os/libcall_owned, core/body_fork, posix/futex. */
#ifndef KBI_MAPS_H
#define KBI_MAPS_H

#include "base/base.h"

struct kbi_maps_line {
	uintptr_t from, to;
	uint64_t offset, inode; /* inode 0: of no file */
	uint8_t protection;
	bool shared, stack;
	bool kernels;           /* its own pages in the process: [vdso] and the like */
};

enum { KBI_MAPS_TEXT = 1 << 22 }; /* room for all of it */

/* The whole text, with a 0 behind it. 0, or errno; E2BIG: it is longer. */
int kbi_maps_read(char *text, size_t size);
/* May the caller? It may have been shut out of /proc. */
bool kbi_maps_may_read(void);
/* Reads one line; the next one, or NULL: there was none any more. */
const char *kbi_maps_next(const char *text, struct kbi_maps_line *m);
/* Each mapping with its name, if any, and the kernel's flags of two letters as /proc/self/smaps has them, " rd wr ". 0, or
 * errno. */
int kbi_maps_each(void (*fn)(const struct kbi_maps_line *m, const char *name, const char *flags, void *arg), void *arg);
/* What `at` lies in; stack and kernels are not told. 0, ENOENT, or errno. */
int kbi_maps_find(uintptr_t at, struct kbi_maps_line *m);

#endif
