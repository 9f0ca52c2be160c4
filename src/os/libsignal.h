/* os/libsignal.h - a signal by which libc's system calls are intercepted (os/libsite,
 * os/libdispatch, os/libseccomp). The runtime handles it; the program's own action for it is kept
 * here.
 * Callers: these three, os/libcall, core/process_birth. A single signal; its handler is set before
 * there is another process. A lock (os/lock) around the kept action; no switch. */
#ifndef KBI_LIBSIGNAL_H
#define KBI_LIBSIGNAL_H

#include <signal.h>

#include "base/base.h"

/* Installs handler() for the signal, on the interrupted code's stack, with all signals but faults
 * blocked. restorer: code through which it returns. The signal is never blocked from then on
 * (os/everywhere). */
void kbi_libsignal_take(int sig, void (*handler)(int, siginfo_t *, void *), const void *restorer);
/* Returns the signal that was taken; 0: none. */
int kbi_libsignal(void);
/* Makes rt_sigaction, with the kernel's structs, on the program's kept action. Returns 0. */
long kbi_libsignal_action(const void *new, void *old);
/* Called by handler() for a signal that is not an interception: sent, or raised by the program's
 * own code. again: length in bytes of the program's instruction, which raises it once more; 0: the
 * instruction does not. */
void kbi_libsignal_others(int sig, siginfo_t *info, void *context, unsigned again);
/* Changes the mask and the restorer of handlers that are installed already (kbi_everywhere_fit). */
void kbi_libsignal_fit_others(void);
/* Makes the program's action the kernel's again: in the calling process, a child; or everywhere. */
void kbi_libsignal_is_programs(void);
void kbi_libsignal_leave(void);

#endif
