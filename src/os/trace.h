/* os/trace.h - ptrace(2) for the supervisor of a program whose virtual processors are processes. A
 * traced process stops at its end, whatever ended it. The supervisor reads its state and can make
 * another process continue from that state. Signals for a traced process pass through the
 * supervisor. x86-64 only.
 * Callers: core/process, core/respawn, core/supervisor: the supervisor; units of libc that set
 * kbi_trace_raises. Raw calls: no errno, no TLS. */
#ifndef KBI_TRACE_H
#define KBI_TRACE_H

#include <signal.h>

#include "base/base.h"

/* Why a process has stopped. */
enum kbi_trace_stop {
	KBI_TRACE_SIGNAL, /* a signal is about to be delivered */
	KBI_TRACE_GROUP,  /* it is stopped, as by SIGSTOP */
	KBI_TRACE_END,    /* it is about to end */
	KBI_TRACE_EXEC,   /* it now runs another program */
	KBI_TRACE_OTHER,
};

enum { KBI_TRACE_EXTENDED = 16384 /* most bytes of floating point and vector registers */ };

struct kbi_trace_place {
	uint64_t regs[32];
	uint64_t mask;           /* blocked signals */
	size_t extended_bytes;
	char extended[KBI_TRACE_EXTENDED] __attribute__((aligned(64)));
};

/* Makes the caller trace its child pid. Returns 0, or -errno: another process traces it, or tracing
 * is forbidden. */
long kbi_trace_seize(int pid);
/* Interpret waitid's answer: for a traced process waitid reports stops, too, even if asked for
 * ended processes only. */
bool kbi_trace_has_ended(const siginfo_t *info);
bool kbi_trace_has_stopped(const siginfo_t *info);
/* Returns why the process has stopped. status: of waitid, CLD_TRAPPED or CLD_STOPPED. *sig: the
 * signal. */
enum kbi_trace_stop kbi_trace_why(int status, int *sig);
/* Returns true on Linux 6.0 and later: a killed process stays at its end until the tracer continues
 * it, even if it is killed again. */
bool kbi_trace_end_is_seen(void);
/* At KBI_TRACE_END: returns the status that wait4 will report. */
int kbi_trace_status(int pid);
/* Reads the siginfo of the signal for which a process has stopped. si_signo 0: an instruction
 * raises the signal and will again if the process continues where kbi_trace_save saw it. Returns
 * false if the process is at its end or gone. */
bool kbi_trace_signal(int pid, siginfo_t *info);
/* Continues a process stopped for another signal and delivers this signal with its siginfo. */
void kbi_trace_go_with(int pid, const siginfo_t *info);
/* Continues a process and delivers this signal (0: none). */
void kbi_trace_go(int pid, int sig);
/* At KBI_TRACE_GROUP: keeps the process stopped until it is continued by SIGCONT. */
void kbi_trace_stay(int pid);
/* Stops tracing the process. */
void kbi_trace_leave(int pid);
/* Save and load the state of a stopped process. Return false if the kernel refuses. An interrupted
 * system call will be made again. before: the state at the previous stop; extended_bytes 0:
 * unknown. */
bool kbi_trace_save(int pid, struct kbi_trace_place *p, const struct kbi_trace_place *before);
bool kbi_trace_load(int pid, struct kbi_trace_place *p);
/* Returns the length of the instruction that ends at `at` and raises a signal for the runtime
 * (libc/intercept_patch, libc/intercept_sud, libc/intercept_seccomp); 0: no such instruction.
 * unmade: the number of a call that may have been refused there, -1: none. Set before processes
 * exist; NULL: there are no such instructions. */
extern KBI_HIDDEN unsigned (*kbi_trace_raises)(uintptr_t at, long unmade);
/* Sends the pending signals of the stopped process `from` to `to`, except for signals raised by an
 * instruction: kbi_trace_save makes sure that the instruction is executed again. */
void kbi_trace_copy_signals(int from, int to);

#endif
