/* core/process_timers.h - limits and timers on the CPU time of a program of several processes,
 * which the kernel would apply to each process alone: timers on its CPU clock, ITIMER_PROF and
 * ITIMER_VIRTUAL, RLIMIT_CPU. libc's calls about these come here (libc/emulate).
 * Caller: process. Calls process_clock, process_children. */
#ifndef KBI_PROCESS_TIMERS_H
#define KBI_PROCESS_TIMERS_H

#include <signal.h>

/* Takes over the timers that the program has set; called by the supervisor before there are other
 * processes. pass: gives the program a signal. */
void kbi_process_timers_setup(int supervisor, void (*pass)(int sig, siginfo_t *info));
/* Gives the calls back: there is no other process after all. */
void kbi_process_timers_forget(void);
/* Does the due work and watches new processes; called by the supervisor whenever it has been
 * woken. */
void kbi_process_timers_look(void);

#endif
