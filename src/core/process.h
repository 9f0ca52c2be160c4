/* core/process.h - UNIX processes as the workers of VPs: all memory is in the shared space at
 * the same addresses, and each VP is a process of its own. The program's first process, the
 * supervisor, runs no thread: it starts the other processes, waits for them, and ends as the
 * program ends. Why, and what differs: doc/process-vps.md.
 * Callers: boot, worker_thread, dump, space, posix. Calls os/memory, libc/emulate, libc/broadcast,
 * mem/stack. */
#ifndef KBI_PROCESS_H
#define KBI_PROCESS_H

#include <signal.h>

#include "core/vp.h"

/* Reserves the space, before any memory of the runtime's is mapped. Returns 0, or errno with the
 * reason in *why. */
int kbi_process_open(const char **why);
/* Makes the VPs processes; called by main, on the process's only kernel thread, when all is set up.
 * main goes on as a ready thread of VP 0, in another process. begin() starts the VPs in the calling
 * process, which becomes the supervisor and does not return. Returns 0; or errno, still in the
 * calling process, with the reason in *why. */
KBI_SWITCHES int kbi_process_begin(int (*begin)(void), const char **why);
/* Starts a process of ours that runs fn(arg) on a stack and TLS block of its own, with the caller's
 * signal mask. Returns 0 or EAGAIN. */
int kbi_process_start(void *(*fn)(void *), void *arg);
/* The table of all processes: its size, and the process in entry i; 0: free. */
unsigned kbi_process_most(void);
int kbi_process_at(unsigned i);
/* Has the supervisor give pass() the signals sent to the program from now on, whatever their
 * action. Before that the first virtual processor gets them, and signals that main blocked at the
 * start wait. */
void kbi_process_pass_by(void (*pass)(siginfo_t *));
bool kbi_process_passes(void);
/* Returns true if the terminal sends this signal to each process of ours, or the kernel sends it to
 * a process for its own CPU time: the supervisor passes on its own copy. */
bool kbi_process_is_copy(const siginfo_t *info);
/* Returns the process that waits for the others, whose number getpid returns everywhere. 0: workers
 * are kernel threads. */
int kbi_process_supervisor(void);

#endif
