/* core/process_fork.h - fork and exec where virtual processors are processes.
 * Callers: process, process_birth. */
#ifndef KBI_PROCESS_FORK_H
#define KBI_PROCESS_FORK_H

#include "base/base.h"

/* Directs libc's fork and exec here; before other processes run. end_others: ends all processes of
 * the program but the supervisor. */
void kbi_process_fork_setup(int supervisor, void (*end_others)(void));
/* Makes the program a plain process again, which shares nothing. No other process runs; the caller
 * has blocked all signals. Without memory for private copies the program ends. */
void kbi_process_fork_alone(void);
/* Forks in the supervisor for a thread that must not make the child itself; arg: clone's arguments.
 * Returns the child's number, 0 in the child, which is by then a plain process, or -errno; -EBUSY:
 * not now. */
long kbi_process_fork_by_supervisor(const long arg[6]);
/* Executes another program if a thread has asked for that; called by the supervisor between two
 * signals. */
void kbi_process_fork_answer(void);
/* Called before that with the signal mask of the executing thread, when the supervisor is the only
 * process. NULL: nothing. */
extern KBI_HIDDEN void (*kbi_process_fork_execs)(void);

#endif
