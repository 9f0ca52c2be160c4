/* core/body_clock.h - the program's CPU time where virtual processors are processes: that of all of them, and of those that
 * have ended.
 * Callers: body_process, body_timers; posix/clock, posix/time. */
#ifndef KBI_BODY_CLOCK_H
#define KBI_BODY_CLOCK_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/times.h>

/* The kernel's, in its order. */
enum kbi_body_clock { KBI_BODY_CLOCK_PROF, KBI_BODY_CLOCK_USER, KBI_BODY_CLOCK_CPU, KBI_BODY_CLOCKS };

void kbi_body_clock_begin(int supervisor);
/* By the supervisor: pid, which has ended, is about to be taken out of the table, and its time is kept; and (0) it is
 * out. */
void kbi_body_clock_ends(int pid);
/* What the program has used, ns; it never goes back. */
uint64_t kbi_body_clock_read(enum kbi_body_clock kind);
/* The kind, if it is a clock of the program's; -1: another one. */
int kbi_body_clock_of(int clock);
/* The kernel's number for a process's. */
int kbi_body_clock_number(int pid, enum kbi_body_clock kind);
/* As getrusage for RUSAGE_SELF has it; what is not time is of the calling process and of those that have ended. */
long kbi_body_clock_usage(struct rusage *r);
/* As times. */
long kbi_body_clock_times(struct tms *to);

#endif
