/* core/process_children.h - the program's children where virtual processors are processes: all are
 * children of the supervisor (the program's first process), so that any thread may wait for them
 * wherever it runs. The supervisor also owns the timers that send signals to the program.
 * Callers: process, process_birth, process_fork, process_timers, posix. */
#ifndef KBI_PROCESS_CHILDREN_H
#define KBI_PROCESS_CHILDREN_H

#include <signal.h>

#include "base/atom.h"

#ifndef sigev_notify_thread_id /* glibc has no name for it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Directs libc's wait calls here; before other processes run. ours: returns true for a process of
 * the runtime's. */
void kbi_children_setup(int supervisor, bool (*ours)(int pid));
/* Gives the calls back to the kernel: there is no other process after all. */
void kbi_children_forget(void);
/* Answers a pending request; called by the supervisor. Returns false if it cannot answer yet: a
 * process of the runtime's that has changed is to be reaped first. */
bool kbi_children_answer(void);
/* Passes on a timer's signal that is for a single kernel thread. Returns false if info is not from
 * such a timer. */
bool kbi_children_timer(const siginfo_t *info);
/* Wakes waiters after a child has changed; called by the supervisor. */
void kbi_children_changed(void);
/* Has the supervisor call make(what). Returns its result, or -EPERM: the caller may not ask. After
 * -EBUSY make is called again. Any thread. */
long kbi_children_make(long (*make)(void *), void *what);
/* Makes all waiters look again. Any thread. */
void kbi_children_look(void);
/* Asked on a waiting thread when it looks again. True: the thread's wait ends with EINTR. NULL: no
 * wait ends. */
extern KBI_HIDDEN bool (*kbi_children_is_over)(void);
/* Returns a word that changes whenever a child has changed; it is woken as a futex then. */
a32 *kbi_children_changes(void);

#endif
