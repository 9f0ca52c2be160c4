/* os/libsite_put.h - writes the code that stands for a system call of libc's, and a jump to it in the call's place. x86-64.
 * Callers: os/libsite, os/ownsite. */
#ifndef KBI_LIBSITE_PUT_H
#define KBI_LIBSITE_PUT_H

#include "os/libsite_code.h"

enum { KBI_LIBSITE_STUB = 192 /* bytes for a site, at most */, KBI_LIBSITE_FUTEX = 202 };

/* Where each replaced call goes: number, and six arguments that it may change; frame: of kbi_libstub_enter. On the caller's
 * stack. */
typedef long kbi_libsite_call(long nr, long arg[6], const uintptr_t *frame);

struct kbi_libsite_pen {
	uint8_t *stub, *end;   /* where the next stub goes, and where there is no more room */
	kbi_libsite_call *call;
	int pid;               /* the answer of getpid */
	bool futex_only;       /* futex calls go to `call`, the rest to the kernel */
	bool private_only;     /* of these only operations that are private to the process */
	const uint8_t *back;   /* where the site's function goes on */
};

/* Gets memory for stubs in reach of a 32-bit jump from low .. high. False: there is none. */
bool kbi_libsite_make_room(struct kbi_libsite_pen *p, uintptr_t low, uintptr_t high, size_t bytes);
/* There is room for it. */
void kbi_libsite_put(struct kbi_libsite_pen *p, const struct kbi_libsite_site *s);

#endif
