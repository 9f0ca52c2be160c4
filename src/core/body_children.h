/* core/body_children.h - the program's children where virtual processors are processes: all are the supervisor's, so
 * that any thread may wait for them wherever it runs. So are timers that send signals to the program.
 * Callers: body_process, body_birth. */
#ifndef KBI_BODY_CHILDREN_H
#define KBI_BODY_CHILDREN_H

#include <signal.h>

#include "base/atom.h"

#ifndef sigev_notify_thread_id /* glibc has no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Before other processes run: libc's wait calls come here from now on. ours: is it a process of the runtime's? */
void kbi_children_setup(int supervisor, bool (*ours)(int pid));
/* There is no other process after all: such calls are the kernel's again. */
void kbi_children_forget(void);
/* The supervisor: answers who asks, and has told who waits that a child has changed. False: not yet, a process of the
 * runtime's that has changed is to be reaped first. */
bool kbi_children_answer(void);
/* Has a timer sent it that is to signal one kernel thread? That has it then. */
bool kbi_children_timer(const siginfo_t *info);
void kbi_children_changed(void);
/* Any thread: the supervisor calls make(what), in answer; what that returns, but for -EBUSY: it is called again. Or -EPERM:
 * the caller may not ask. */
long kbi_children_make(long (*make)(void *), void *what);
/* Anybody: who waits looks again. */
void kbi_children_look(void);
/* Asked then, of the calling thread: it is not to wait any more, EINTR. NULL: nobody is. */
extern KBI_HIDDEN bool (*kbi_children_is_over)(void);
/* A word that is another one whenever one has changed; it is woken as a futex then. */
a32 *kbi_children_changes(void);

#endif
