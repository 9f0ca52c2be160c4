/* core/process_clock.h - the program's CPU time where virtual processors are processes: the sum
 * over all of them, and over the processes that have ended.
 * Callers: process, process_timers; posix/clock, posix/time. */
#ifndef KBI_PROCESS_CLOCK_H
#define KBI_PROCESS_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/times.h>

/* The kernel's kinds, in its order. */
enum kbi_process_clock {
	KBI_PROCESS_CLOCK_PROF,
	KBI_PROCESS_CLOCK_USER,
	KBI_PROCESS_CLOCK_CPU,
	KBI_PROCESS_CLOCKS
};

/* Begins to count, at start. */
void kbi_process_clock_begin(int supervisor);
/* Keeps the time of pid, which has ended and is about to leave the table; called by the supervisor,
 * and with 0 when it has left. */
void kbi_process_clock_ends(int pid);
/* Returns the program's time so far, ns; it never goes back. */
uint64_t kbi_process_clock_read(enum kbi_process_clock kind);
/* Returns the kind if it is a clock of the program's; else -1. */
int kbi_process_clock_of(int clock);
/* Returns the kernel's number for a process's clock. */
int kbi_process_clock_number(int pid, enum kbi_process_clock kind);
/* Does getrusage for RUSAGE_SELF. Fields that are not times are the sums of the calling process and
 * the processes that have ended. */
long kbi_process_clock_usage(struct rusage *r);
/* Does times(). */
long kbi_process_clock_times(struct tms *to);

#endif
