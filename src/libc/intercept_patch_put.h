/* libc/intercept_patch_put.h - writes the code that replaces a system call of libc's (a "stub"),
 * and a jump to it in the call's place. x86-64. The caller has made both places writable; no locks,
 * no switch.
 * Callers: libc/intercept_patch, libc/intercept_module. */
#ifndef KBI_INTERCEPT_PATCH_PUT_H
#define KBI_INTERCEPT_PATCH_PUT_H

#include "libc/intercept_patch_code.h"

enum { KBI_INTERCEPT_PATCH_STUB = 192 /* most bytes of a stub */, KBI_INTERCEPT_PATCH_FUTEX = 202 };

/* The function that makes each replaced call, on the caller's stack. nr: number; arg: six
 * arguments, which it may change; frame: the frame of kbi_intercept_stub_enter. */
typedef long kbi_intercept_call(long nr, long arg[6], const uintptr_t *frame);

struct kbi_intercept_pen {
	uint8_t *stub, *end;   /* where the next stub goes, and the end of the room */
	kbi_intercept_call *call;
	int pid;               /* the answer of getpid */
	bool futex_only;       /* futex calls go to `call`, the rest to the kernel */
	/* with futex_only: only operations that are private to the process go to `call` */
	bool private_only;
	const uint8_t *back;   /* where the site's function goes on */
};

/* Gets memory for stubs in reach of a 32-bit jump from low .. high. Returns false if there is
 * none. */
bool kbi_intercept_patch_make_room(struct kbi_intercept_pen *p, uintptr_t low, uintptr_t high,
	size_t bytes);
/* Writes the stub and the jump for a site. The pen has room for the stub. */
void kbi_intercept_patch_put(struct kbi_intercept_pen *p, const struct kbi_intercept_site *s);

#endif
