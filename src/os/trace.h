/* os/trace.h - what ptrace(2) gives the supervisor of a program whose virtual processors are processes: it stops at a
 * process's end, whatever ended it, and reads where it stood; and another process is made to stand there. Signals for a
 * process that is traced come by way of the one that traces it. x86-64 only.
 * Callers: core/body_process, core/revive: the supervisor. Raw calls: no errno, no TLS. */
#ifndef KBI_TRACE_H
#define KBI_TRACE_H

#include <signal.h>

#include "base/base.h"

/* Why a process has stopped. */
enum kbi_trace_stop {
	KBI_TRACE_SIGNAL, /* a signal is about to be delivered */
	KBI_TRACE_GROUP,  /* it is stopped, as by SIGSTOP */
	KBI_TRACE_END,    /* it is about to end */
	KBI_TRACE_EXEC,   /* it runs another program now */
	KBI_TRACE_OTHER,
};

enum { KBI_TRACE_EXTENDED = 16384 /* bytes of floating point and vector registers, at most */ };

struct kbi_trace_place {
	uint64_t regs[32];
	uint64_t mask;           /* blocked signals */
	size_t extended_bytes;
	char extended[KBI_TRACE_EXTENDED] __attribute__((aligned(64)));
};

/* The caller traces its child pid from now on. 0, -errno: somebody else does, or nobody may. */
long kbi_trace_seize(int pid);
/* What waitid has said when it was asked for one that has ended: of one that is traced it tells of stops, too. */
bool kbi_trace_has_ended(const siginfo_t *info);
bool kbi_trace_has_stopped(const siginfo_t *info);
/* status: of waitid, CLD_TRAPPED or CLD_STOPPED. *sig: which signal. */
enum kbi_trace_stop kbi_trace_why(int status, int *sig);
/* Linux 6.0 and later: one that was killed stands at its end until it is told to go on, whoever kills it again. */
bool kbi_trace_end_is_seen(void);
/* At KBI_TRACE_END: its status as wait4 will have it. */
int kbi_trace_status(int pid);
/* What the signal says that a process stops for; si_signo 0: an instruction raises it, and will again where kbi_trace_save
 * saw it. False: it stands at its end by now, or is gone. */
bool kbi_trace_signal(int pid, siginfo_t *info);
/* It goes on from the stop for another signal, and gets this one, as it was sent. */
void kbi_trace_go_with(int pid, const siginfo_t *info);
/* It goes on, and gets this signal (0: none). */
void kbi_trace_go(int pid, int sig);
/* At KBI_TRACE_GROUP: stays stopped until somebody continues it. */
void kbi_trace_stay(int pid);
/* It is nobody's that is traced any more. */
void kbi_trace_leave(int pid);
/* Of a process that has stopped. False: the kernel does not say. A system call that it was in will be made again.
 * before: where it stood when it last stopped, bytes 0: not known. */
bool kbi_trace_save(int pid, struct kbi_trace_place *p, const struct kbi_trace_place *before);
bool kbi_trace_load(int pid, struct kbi_trace_place *p);
/* How long the instruction is that ends at `at` and raises a signal for the runtime (os/libsite, os/libdispatch,
 * os/libseccomp); 0: none does. unmade: the number of a call that may have been refused there, -1: none. Set before there
 * are processes; NULL: there are none of these. */
extern KBI_HIDDEN unsigned (*kbi_trace_raises)(uintptr_t at, long unmade);
/* The signals that wait in `from`, which has stopped, wait in `to`, too; but for those that an instruction has raised:
 * kbi_trace_save saw to it that it is executed again. */
void kbi_trace_copy_signals(int from, int to);

#endif
