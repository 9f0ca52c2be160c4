/* libc/crash_libc.h - knowledge about a crash that only glibc has: sizes of its functions, frames
 * by its unwinder, and the streams that a thread has locked. With another libc there is no answer,
 * and crashes are not contained.
 * Callers: libc/crash, core/contain. */
#ifndef KBI_CRASH_LIBC_H
#define KBI_CRASH_LIBC_H

#include "base/base.h"

struct kbi_crash_place {
	uintptr_t low, size; /* low 0: not found */
};

/* Opens libc. Call once, before the other functions. Returns false if nothing can be found out. */
bool kbi_crash_open_libc(void);
/* Finds libc's own function of that name (libcs), or the function that the program would get.
 * Leaves *p unchanged if there is none. */
void kbi_crash_find(const char *name, bool libcs, struct kbi_crash_place *p);
/* Calls each(arg, pc) for every frame of the caller's stack, innermost first, until it returns
 * false. Usable in signal handlers. */
void kbi_crash_frames(bool (*each)(void *arg, uintptr_t pc), void *arg);
/* Frees the locks of libc's streams that the owner of this TLS block holds. May wait in the
 * kernel. */
void kbi_crash_free_streams(void *tp);

#endif
