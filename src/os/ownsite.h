/* os/ownsite.h - futex calls that a module makes by instructions of its own (libgomp's barriers and locks): they are
 * replaced by jumps to code of ours, so that its threads may be lightweight. x86-64; elsewhere nothing is replaced.
 * Callers: posix/caller, the command (a count). Calls the loader. Two calls at once are not allowed. */
#ifndef KBI_OWNSITE_H
#define KBI_OWNSITE_H

#include "os/libsite_put.h"

struct kbi_ownsite_counts {
	unsigned futex;    /* system call instructions that are futex calls, or may be */
	unsigned strange;  /* of these, with surroundings that were not understood */
	unsigned waits;    /* instructions of another known number that can block: none may be there */
};

/* The module that `at` lies in. The process must have no other kernel thread. False: nothing has been changed, its waits
 * stay the kernel's. */
bool kbi_ownsite_replace(uintptr_t at, kbi_libsite_call *call);
/* Only counts. False: not a module's code, or no memory. */
bool kbi_ownsite_count(uintptr_t at, struct kbi_ownsite_counts *c);

#endif
