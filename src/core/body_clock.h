/* core/body_clock.h - the program's CPU time where virtual processors are processes: that of all of them, and of those that
 * have ended; and what the kernel does when one process has used so much, done for the program: timers on its CPU clock,
 * ITIMER_PROF and ITIMER_VIRTUAL, RLIMIT_CPU. doc/why/cpu-clocks.md.
 * Callers: body_process; posix/clock, which reads the clock. */
#ifndef KBI_BODY_CLOCK_H
#define KBI_BODY_CLOCK_H

#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

/* The kernel's, in its order. */
enum kbi_body_clock { KBI_BODY_CLOCK_PROF, KBI_BODY_CLOCK_USER, KBI_BODY_CLOCK_CPU, KBI_BODY_CLOCKS };

/* By the supervisor, before there are others: what the program has set goes on. pass: gives the program a signal. */
void kbi_body_clock_setup(int supervisor, void (*pass)(int sig, siginfo_t *info));
void kbi_body_clock_forget(void);
/* By the supervisor: pid is about to be reaped; its time is kept. */
void kbi_body_clock_ends(int pid);
/* By the supervisor, whenever it has been woken: what is due is done, and processes that are new are watched. */
void kbi_body_clock_look(void);
/* What the program has used, ns; it never goes back. */
uint64_t kbi_body_clock_read(enum kbi_body_clock kind);
/* Is it such a clock of the calling program's? */
int kbi_body_clock_of(int clock);
/* As getrusage for RUSAGE_SELF has it; what is not time is of the calling process and of those that have ended. */
long kbi_body_clock_usage(struct rusage *r);

#endif
