/* os/libcall.h - system calls of libc and the loader that mean one process, where virtual processors are processes:
 * maps, what signals do, the break, numbers of processes. Memory comes from the shared space; what belongs to each
 * process is done in every one.
 * Callers: core/body_process, the command. Calls libsite, everywhere, space. */
#ifndef KBI_LIBCALL_H
#define KBI_LIBCALL_H

#include "base/base.h"

/* From now on libc's calls are made as above, and its futex calls reach other processes. The only kernel thread, before
 * there is another process. 0, or errno: *why. */
extern KBI_HIDDEN long (*kbi_libcall_wait)(long nr, const long arg[6]); /* wait4 and waitid; NULL: the kernel's */
/* wait4 or waitid, whatever bodies are. */
long kbi_libcall_waits(long nr, const long arg[6]);
/* rt_sigaction in every process; -EINVAL: the signal is ours. */
long kbi_libcall_action(long sig, const void *new, void *old, long mask_bytes);
/* Made by the program's first process: timers that send signals to the program, tracing, and the like. */
extern KBI_HIDDEN long (*kbi_libcall_there)(long nr, const long arg[6]);
/* About the program's CPU time, which is that of all processes: true, *r is the answer. */
extern KBI_HIDDEN bool (*kbi_libcall_cpu)(long nr, const long arg[6], long *r);
extern KBI_HIDDEN long (*kbi_libcall_futex)(const long arg[6]); /* a wait, of words that other processes see */
extern KBI_HIDDEN long (*kbi_libcall_exec)(long nr, const long arg[6]); /* execve and execveat */
/* A signal for kernel thread tid, by who has taken it for its own. And the caller's mask has been changed so, as
 * rt_sigprocmask has it. NULL: nothing but what the kernel does. */
extern KBI_HIDDEN long (*kbi_libcall_raise)(int tid, int sig);
extern KBI_HIDDEN void (*kbi_libcall_masks)(long how, const uint64_t *set);
extern KBI_HIDDEN long (*kbi_libcall_fork)(const long arg[6]);         /* clone as fork makes it; NULL: ENOSYS */
int kbi_libcall_take_over(const char **why);
/* Before that: what speaks against it, or NULL. A descriptor that gives the signals of one process: none of them would see
 * those that are sent to the program. */
const char *kbi_libcall_why_not(void);

#endif
