/* libc/intercept_patch_code.h - reads the code before a system call instruction (a "site"): which
 * call it is, and which instructions must move with it if a jump is to stand there. x86-64. Only
 * reads code; no locks, no switch.
 * Callers: libc/intercept_patch, libc/intercept_patch_function, libc/intercept_patch_put,
 * libc/intercept_module. */
#ifndef KBI_INTERCEPT_PATCH_CODE_H
#define KBI_INTERCEPT_PATCH_CODE_H

#include "base/base.h"

enum {
	KBI_INTERCEPT_PATCH_BEFORE = 16, /* most bytes before a site that may move */
	/* bytes before a site that are searched where the function's beginning is not known */
	KBI_INTERCEPT_PATCH_LOOK = 48,
};

struct kbi_intercept_site {
	uint8_t *at;           /* the syscall instruction */
	unsigned before;       /* bytes that move with it; 0: the code is not understood */
	/* distance from `at` to the second of two instructions that move; 0: a single instruction
	 * moves */
	unsigned second;
	/* a single instruction moves, and ends with a distance from its end to data */
	bool relative;
	long nr;               /* the call's number; -1: not known */
	/* its function has used registers of more than 128 bits before the site, which a call of C
	 * loses */
	bool wide;
};

/* Fills in all fields but `at`, which has more than KBI_INTERCEPT_PATCH_LOOK bytes of code before
 * it. */
void kbi_intercept_patch_understand(struct kbi_intercept_site *s);
/* Returns true for mov $n,%eax where n may be a call's number. */
bool kbi_intercept_patch_is_number(const uint8_t *p);
/* Returns true if the call is _exit's: the code before it loads two numbers into registers, then
 * either of them. */
bool kbi_intercept_patch_is_exit(const uint8_t *at);

#endif
