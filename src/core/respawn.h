/* core/respawn.h - respawn: when a process that is a virtual processor was killed, another process
 * takes its place at the very instruction, with its registers, signal mask and number in every
 * table; the two share memory, descriptors and folder anyway. So nothing of the library or libc is
 * left half done.
 * Callers: process and supervisor, for the program's first process, which traces the processes.
 * Calls os/trace, libc/broadcast, worker_pool. */
#ifndef KBI_RESPAWN_H
#define KBI_RESPAWN_H

#include <signal.h>

#include "base/base.h"

struct kbi_trace_place;

/* Maps the memory for it. Returns 0 or ENOMEM. Once, at start. */
int kbi_respawn_setup(void);
/* Makes a successor of `old`, which was killed. Returns the successor's number, or -errno if there
 * is none; the successor waits for kbi_respawn_go. supervisor: the caller's number. In between the
 * caller corrects its own tables. */
int kbi_respawn(int old, int supervisor);
/* Lets the successor go on at *place; `old`, if it has not ended yet, ends. passed: a signal that
 * `old` was about to get, or si_signo 0; sig: a further signal for the successor. Returns false if
 * the successor was killed, too. */
bool kbi_respawn_go(int old, int now, struct kbi_trace_place *place, int sig,
	const siginfo_t *passed);
/* Notes that `old` has ended. */
void kbi_respawn_gone(int old);
/* Returns true if pid was a process of ours and was killed not long ago. */
bool kbi_respawn_was_ours(int pid);
/* Returns true if pid has ended so, or is about to, and is not reaped yet. */
bool kbi_respawn_is_dying(int pid);
/* Reaps the killed processes that have ended since. */
void kbi_respawn_reap(void);

#endif
