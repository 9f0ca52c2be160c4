/* core/body_timers.h - what the kernel does when one process has used so much CPU time, done for a program of several:
 * timers on its CPU clock, ITIMER_PROF and ITIMER_VIRTUAL, RLIMIT_CPU. Calls of libc's about these come here (os/libcall).
 * Caller: body_process. Calls body_clock, body_children. */
#ifndef KBI_BODY_TIMERS_H
#define KBI_BODY_TIMERS_H

#include <signal.h>

/* By the supervisor, before there are others: what the program has set goes on. pass: gives the program a signal. */
void kbi_body_timers_setup(int supervisor, void (*pass)(int sig, siginfo_t *info));
/* There is no other process after all. */
void kbi_body_timers_forget(void);
/* By the supervisor, whenever it has been woken: what is due is done, and processes that are new are watched. */
void kbi_body_timers_look(void);

#endif
