/* libc/intercept_module.h - futex calls that a module makes by system call instructions of its own
 * (libgomp's barriers and locks): they are replaced by jumps to code of ours, so that the module's
 * threads may be lightweight. x86-64; on other machines nothing is replaced.
 * Callers: posix/creator_module, the command (a count). Calls the loader (dl_iterate_phdr). Two
 * calls at once are not allowed. */
#ifndef KBI_INTERCEPT_MODULE_H
#define KBI_INTERCEPT_MODULE_H

#include "libc/intercept_patch_put.h"

struct kbi_intercept_module_counts {
	unsigned futex;    /* system call instructions that are futex calls, or may be */
	unsigned strange;  /* of these: the surrounding code was not understood */
	/* instructions of another known number that can block: the module must have none */
	unsigned waits;
};

/* Replaces the futex calls of the module that contains `at`. The process must have no other kernel
 * thread. Returns false if nothing has been changed: the kernel makes the module's waits, as
 * before. */
bool kbi_intercept_module_replace(uintptr_t at, kbi_intercept_call *call);
/* Only counts. Returns false if `at` is not in a module's code, or there is no memory. */
bool kbi_intercept_module_count(uintptr_t at, struct kbi_intercept_module_counts *c);

#endif
