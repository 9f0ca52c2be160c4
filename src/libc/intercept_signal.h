/* libc/intercept_signal.h - a signal by which libc's system calls are intercepted
 * (libc/intercept_patch, libc/intercept_sud, libc/intercept_seccomp). The runtime handles it; the
 * program's own action for it is kept here.
 * Callers: these three, libc/emulate, core/process_birth. A single signal; its handler is set
 * before there is another process. A lock (os/lock) around the kept action; no switch. */
#ifndef KBI_INTERCEPT_SIGNAL_H
#define KBI_INTERCEPT_SIGNAL_H

#include <signal.h>

#include "base/base.h"

/* Installs handler() for the signal, on the interrupted code's stack, with all signals but faults
 * blocked. restorer: code through which it returns. The signal is never blocked from then on
 * (libc/broadcast). */
void kbi_intercept_signal_take(int sig, void (*handler)(int, siginfo_t *, void *),
	const void *restorer);
/* Returns the signal that was taken; 0: none. */
int kbi_intercept_signal(void);
/* Makes rt_sigaction, with the kernel's structs, on the program's kept action. Returns 0. */
long kbi_intercept_signal_action(const void *new, void *old);
/* Called by handler() for a signal that is not an interception: sent, or raised by the program's
 * own code. again: length in bytes of the program's instruction, which raises it once more; 0: the
 * instruction does not. */
void kbi_intercept_signal_others(int sig, siginfo_t *info, void *context, unsigned again);
/* Changes the mask and the restorer of handlers that are installed already (kbi_broadcast_fit). */
void kbi_intercept_signal_fit_others(void);
/* Makes the program's action the kernel's again: in the calling process, a child; or everywhere. */
void kbi_intercept_signal_is_programs(void);
void kbi_intercept_signal_leave(void);

#endif
