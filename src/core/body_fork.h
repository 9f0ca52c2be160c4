/* core/body_fork.h - fork and exec where virtual processors are processes. Callers: body_process, body_birth. */
#ifndef KBI_BODY_FORK_H
#define KBI_BODY_FORK_H

#include "base/base.h"

/* Before other processes run: libc's fork and exec come here from now on. end_others: ends all processes of the program but
 * the supervisor. */
void kbi_body_fork_setup(int supervisor, void (*end_others)(void));
/* No other process runs: the program, which calls with all signals blocked, is a process like any other again, and shares
 * nothing. If there is no memory for that it ends. */
void kbi_body_fork_alone(void);
/* The supervisor, for a thread that is not to make the child itself: fork, as clone has its arguments. 0 in the child,
 * which is a process like any other by then; -errno; -EBUSY: not now. */
long kbi_body_fork_by_supervisor(const long arg[6]);
/* The supervisor, between two signals: becomes another program, if a thread has asked for that. */
void kbi_body_fork_answer(void);
/* Called by it with the signal mask of the thread that executes, when it is the only process. NULL: nothing. */
extern KBI_HIDDEN void (*kbi_body_fork_execs)(void);

#endif
