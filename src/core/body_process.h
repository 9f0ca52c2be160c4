/* core/body_process.h - UNIX processes as the bodies of VPs: all memory is in the shared space at the same addresses, and
 * each VP is a process of its own. The program's first process runs no thread: it starts the others, waits for them, and
 * ends as the program ends. Why, and what differs: doc/process-vps.md.
 * Callers: boot, body_thread. Calls os/memory, os/libcall, os/everywhere, mem/stack. */
#ifndef KBI_BODY_PROCESS_H
#define KBI_BODY_PROCESS_H

#include <signal.h>

#include "core/vp.h"

/* Reserves the space, before any memory of the runtime's is mapped. 0, or errno: *why. */
int kbi_process_open(const char **why);
/* By main, on the process's only kernel thread, when all is set up: it goes on as a ready thread of VP 0, in another
 * process. begin() starts the VPs, in the process that called, which does not return. 0; or errno, still in the calling
 * process: *why. */
KBI_SWITCHES int kbi_process_begin(int (*begin)(void), const char **why);
/* A process of ours that runs fn(arg) on a stack and TLS block of its own, with the caller's signal mask. 0, EAGAIN. */
int kbi_process_start(void *(*fn)(void *), void *arg);
/* All of them: those that run, 0 at other places. */
unsigned kbi_process_most(void);
int kbi_process_at(unsigned i);
/* From now on the supervisor gives pass() what has been sent to the program, whatever the action. Before that the first
 * virtual processor gets it, and what main blocked at the start waits. */
void kbi_process_pass_by(void (*pass)(siginfo_t *));
bool kbi_process_passes(void);
/* A signal that the terminal has sent to each process of ours, or the kernel to a process for its own CPU time: the
 * supervisor passes on its own. */
bool kbi_process_is_copy(const siginfo_t *info);
/* The process that waits for the others: what getpid says everywhere. 0: bodies are kernel threads. */
int kbi_process_supervisor(void);

#endif
