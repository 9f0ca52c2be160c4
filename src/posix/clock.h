/* posix/clock.h - CPU clocks of lightweight threads. A program knows the clock of another thread by a number that looks
 * like the kernel's: the thread's number, inverted, and what kind of clock it is. Main's is the process's number; the
 * others' are above all that the kernel has, and tell the place of the descriptor and something of the thread that has it.
 * Callers: posix/time, posix/identity; programs. May be called in signal handlers. */
#ifndef KBI_CLOCK_H
#define KBI_CLOCK_H

#include "posix/posix.h"

/* Whose CPU clock it is, a lightweight thread's; NULL: no such thread's, or another clock. */
struct kb_thread *kbi_clock_whose(clockid_t clock);
/* The caller, if it is a lightweight thread with TLS of its own; else NULL. */
struct kb_thread *kbi_clock_caller(void);
/* Is it the program's CPU clock, and the kernel has one for each of its processes? */
bool kbi_clock_is_programs(clockid_t clock);
/* What t has used of the processor, ns. */
uint64_t kbi_clock_read(struct kb_thread *t);
/* clock_gettime, clock_getres and getrusage by syscall(); false: not about such a clock. *r as kernels give it. */
bool kbi_clock_by_number(long n, const long *a, long *r);

#endif
