/* libc/emulate.h - system calls of libc and the loader that concern one process, where virtual
 * processors are processes: maps, signal actions, the break, numbers of processes. Memory comes
 * from the shared space; changes to a process's state are made in every process.
 * Callers: core (process and the units that set the hooks below), posix/call_child,
 * posix/call_number, posix/kaction. Calls intercept, broadcast, os/memory. On the caller's stack,
 * inside libc; no switch. */
#ifndef KBI_EMULATE_H
#define KBI_EMULATE_H

#include "base/base.h"

/* Hooks of core; NULL: the kernel's call, except where noted. Makes wait4 and waitid. */
extern KBI_HIDDEN long (*kbi_emulate_wait)(long nr, const long arg[6]);
/* Makes wait4 or waitid, whatever workers are: kernel threads or processes. */
long kbi_emulate_waits(long nr, const long arg[6]);
/* Makes rt_sigaction in every process; -EINVAL: the signal is ours. */
long kbi_emulate_action(long sig, const void *new, void *old, long mask_bytes);
/* Makes a call in the program's first process: timers that send signals to the program, tracing,
 * and the like. */
extern KBI_HIDDEN long (*kbi_emulate_there)(long nr, const long arg[6]);
/* Answers a call about the program's CPU time, which is the sum over all processes. Returns true:
 * *r is the answer. */
extern KBI_HIDDEN bool (*kbi_emulate_cpu)(long nr, const long arg[6], long *r);
/* waits at a word that other processes see */
extern KBI_HIDDEN long (*kbi_emulate_futex)(const long arg[6]);
extern KBI_HIDDEN long (*kbi_emulate_exec)(long nr, const long arg[6]); /* execve and execveat */
/* Raises a signal for kernel thread tid. The second is told the change of the caller's mask, as
 * rt_sigprocmask has it. Both are set by core/worker_thread. */
extern KBI_HIDDEN long (*kbi_emulate_raise)(int tid, int sig);
extern KBI_HIDDEN void (*kbi_emulate_masks)(long how, const uint64_t *set);
/* clone as fork makes it; NULL: ENOSYS */
extern KBI_HIDDEN long (*kbi_emulate_fork)(const long arg[6]);
/* Makes libc's calls as above from now on, and its futex calls reach other processes. Call in the
 * only kernel thread, before there is another process. Returns 0, or errno: *why tells the
 * reason. */
int kbi_emulate_take_over(const char **why);
/* Before that: returns why the calls cannot be intercepted, or NULL. For example a descriptor that
 * gives the signals of one process: no process would see the signals that are sent to the
 * program. */
const char *kbi_emulate_why_not(void);

#endif
