/* libc/intercept_cancel.h - cancellation points of libc 2.41 and later where its system calls are
 * intercepted. From 2.41 on all of libc's cancellation points are in a single function. The handler
 * of libc's cancellation signal cancels a thread that is interrupted between two addresses of that
 * function; a call made elsewhere is no cancellation point. Before 2.41 a mark of the thread says
 * whether it may be cancelled, wherever it is. x86-64 only.
 * Callers: libc/intercept_patch_put, libc/emulate. On any stack, no locks, no switch. */
#ifndef KBI_INTERCEPT_CANCEL_H
#define KBI_INTERCEPT_CANCEL_H

#include "base/base.h"

#include <signal.h>

/* Looks for the function, while its code is still as libc has it. Before that, and in older
 * versions, there is none. */
void kbi_intercept_cancel_find(void);
/* Notes the code from .. to, which replaces the call that ends at `behind`, if that is the
 * function's call. */
void kbi_intercept_cancel_stub(const uint8_t *behind, const uint8_t *from, const uint8_t *to);
/* Returns true if the call is the function's. frame: the frame of kbi_intercept_stub_enter, which
 * makes the call. */
bool kbi_intercept_cancel_made(const uintptr_t *frame);
/* Calls libc's handler so that it also recognises a thread interrupted in a call that the kernel
 * makes in our code. */
void kbi_intercept_cancel_handle(void (*handler)(int, siginfo_t *, void *), int sig,
	siginfo_t *info, void *context);

#endif
