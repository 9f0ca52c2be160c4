/* os/libsignal.h - a signal that libc's system calls raise where they are taken over (os/libsite, os/libdispatch,
 * os/libseccomp): who handles it is the runtime, and the program's own action for it is kept here.
 * Callers: the three, os/libcall, core/body_birth. One signal; its handler is set before there is another process. */
#ifndef KBI_LIBSIGNAL_H
#define KBI_LIBSIGNAL_H

#include <signal.h>

#include "base/base.h"

/* handler() has the signal from now on, on the interrupted code's stack; nothing interrupts it but faults. restorer: how it
 * returns. Never blocked then: os/everywhere. */
void kbi_libsignal_take(int sig, void (*handler)(int, siginfo_t *, void *), const void *restorer);
/* The one that was taken; 0: none. */
int kbi_libsignal(void);
/* As rt_sigaction, of the kernel's structs: what the program wants done. */
long kbi_libsignal_action(const void *new, void *old);
/* By handler(), which it was not meant for: sent by somebody, or raised by the program's own means. again: the program's
 * instruction is so many bytes long and raises it once more; 0: it does not. */
void kbi_libsignal_others(int sig, siginfo_t *info, void *context, unsigned again);
/* Handlers that are installed already: what they block, and how they return (kbi_everywhere_fit). */
void kbi_libsignal_fit_others(void);
/* The program's action is the kernel's again: in the calling process, a child; everywhere. */
void kbi_libsignal_is_programs(void);
void kbi_libsignal_leave(void);

#endif
