/* core/revive.h - a process that is a virtual processor was killed: another one takes its place at the very instruction,
 * with its registers, signal mask and number in every table; memory, descriptors and folder they share anyway. So nothing
 * of the library or libc that it was in the middle of is left half done.
 * Callers: body_process: the supervisor, who traces the processes. Calls os/trace, os/everywhere, spare. */
#ifndef KBI_REVIVE_H
#define KBI_REVIVE_H

#include <signal.h>

#include "base/base.h"

struct kbi_trace_place;

/* Memory for it. ENOMEM. Once, at start. */
int kbi_revive_setup(void);
/* `old` stood at this place, and was killed. The number of its successor, which waits for kbi_revive_go; or -errno: it
 * cannot be had. supervisor: the caller. In between the caller corrects its own tables. */
int kbi_revive(int old, int supervisor);
/* The successor goes on there, the old one, if it has not ended yet, ends. passed: a signal that the old one was
 * about to get, or si_signo 0; sig: another one for the successor. */
bool kbi_revive_go(int old, int now, struct kbi_trace_place *place, int sig, const siginfo_t *passed);
/* It has ended. */
void kbi_revive_gone(int old);
/* Was pid one of ours and was killed, not long ago? */
bool kbi_revive_was_ours(int pid);
/* Has it ended so, or is about to, and is not reaped yet? */
bool kbi_revive_is_dying(int pid);
/* Reaps those that have ended since. */
void kbi_revive_bury(void);

#endif
