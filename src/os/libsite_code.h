/* os/libsite_code.h - reads the code before a system call instruction: which call it is, and what must move with it if a
 * jump is to stand there. x86-64. Callers: os/libsite, os/ownsite. */
#ifndef KBI_LIBSITE_CODE_H
#define KBI_LIBSITE_CODE_H

#include "base/base.h"

enum {
	KBI_LIBSITE_BEFORE = 16, /* bytes before a site that may be moved, */
	KBI_LIBSITE_LOOK = 48,   /* and looked at, where no function's beginning is known */
};

struct kbi_libsite_site {
	uint8_t *at;           /* the syscall instruction */
	unsigned before;       /* bytes that move with it; 0: not understood */
	unsigned second;       /* how far before it the second of two instructions that move begins; 0: there is one */
	bool relative;         /* a single instruction moves, and ends with a distance from its end to data */
	long nr;               /* -1: not known */
	bool wide;             /* its function has used registers of more than 128 bits before it, which a call of C loses */
};

/* Fills in all but `at`, which has more than so many bytes of code before it. */
void kbi_libsite_understand(struct kbi_libsite_site *s);
/* mov $n,%eax where n may be a call's number. */
bool kbi_libsite_is_number(const uint8_t *p);
/* Is it that of _exit: two numbers in registers, then either? */
bool kbi_libsite_is_exit(const uint8_t *at);

#endif
