/* os/libcancel.h - cancellation points of libc 2.41 and later where its system calls are taken over. They are all in a
 * single function there, and its signal's handler cancels a thread that is interrupted between two places of that; a call
 * that is made elsewhere is no cancellation point. Before 2.41 a mark of the thread says so, wherever it is. x86-64 only.
 * Callers: os/libsite, os/libcall. */
#ifndef KBI_LIBCANCEL_H
#define KBI_LIBCANCEL_H

#include "base/base.h"

#include <signal.h>

/* Looks for the function, whose code is as libc has it still. Before that, and in older versions, there is none. */
void kbi_libcancel_find(void);
/* The code that stands for the call behind which that is. */
void kbi_libcancel_stub(const uint8_t *behind, const uint8_t *from, const uint8_t *to);
/* Is it that function's call? frame: of kbi_libstub_enter, which makes it. */
bool kbi_libcancel_made(const uintptr_t *frame);
/* libc's handler, for a thread that is interrupted in a call which the kernel makes in our code, too. */
void kbi_libcancel_handle(void (*handler)(int, siginfo_t *, void *), int sig, siginfo_t *info, void *context);

#endif
