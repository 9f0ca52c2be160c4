/* os/libsite_code.h - reads the code before a system call instruction (a "site"): which call it is,
 * and which instructions must move with it if a jump is to stand there. x86-64. Only reads code; no
 * locks, no switch.
 * Callers: os/libsite, os/libsite_function, os/libsite_put, os/ownsite. */
#ifndef KBI_LIBSITE_CODE_H
#define KBI_LIBSITE_CODE_H

#include "base/base.h"

enum {
	KBI_LIBSITE_BEFORE = 16, /* most bytes before a site that may move */
	/* bytes before a site that are searched where the function's beginning is not known */
	KBI_LIBSITE_LOOK = 48,
};

struct kbi_libsite_site {
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

/* Fills in all fields but `at`, which has more than KBI_LIBSITE_LOOK bytes of code before it. */
void kbi_libsite_understand(struct kbi_libsite_site *s);
/* Returns true for mov $n,%eax where n may be a call's number. */
bool kbi_libsite_is_number(const uint8_t *p);
/* Returns true if the call is _exit's: the code before it loads two numbers into registers, then
 * either of them. */
bool kbi_libsite_is_exit(const uint8_t *at);

#endif
