/* os/crash_libc.h - what of a crash only glibc tells: how long its functions are, the frames by way of its unwinder, and
 * which of its streams somebody has locked. Elsewhere nothing is told, and crashes are not contained.
 * Callers: os/crash, core/contain. */
#ifndef KBI_CRASH_LIBC_H
#define KBI_CRASH_LIBC_H

#include "base/base.h"

struct kbi_crash_place {
	uintptr_t low, size; /* low 0: not there */
};

/* Once, first of all. False: it tells nothing. */
bool kbi_crash_open_libc(void);
/* libc's own function of that name, or the one that the program would get. Stays as it is if there is none. */
void kbi_crash_find(const char *name, bool libcs, struct kbi_crash_place *p);
/* Every frame of the caller's stack, innermost first, until `each` says false. In signal handlers, too. */
void kbi_crash_frames(bool (*each)(void *arg, uintptr_t pc), void *arg);
/* The locks of libc's streams that the owner of this TLS block holds are free again. May wait in the kernel. */
void kbi_crash_free_streams(void *tp);

#endif
