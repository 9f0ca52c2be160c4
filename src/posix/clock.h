/* posix/clock.h - CPU clocks of lightweight threads. A program knows the clock of another thread by
 * a clockid_t in the kernel's form: a number, inverted, and the kind of clock. Main's number is the
 * process's; the number of any further thread is above all numbers of the kernel, and contains the
 * place of the descriptor and a check of the thread that uses it.
 * Callers: posix/time, call_number, identity, cputimer; programs. May be called in signal
 * handlers. */
#ifndef KBI_CLOCK_H
#define KBI_CLOCK_H

#include "posix/posix.h"

/* Returns the lightweight thread whose CPU clock it is; NULL: it is another clock. */
struct kb_thread *kbi_clock_whose(clockid_t clock);
/* Returns the caller if it is a lightweight thread with TLS of its own; else NULL. */
struct kb_thread *kbi_clock_caller(void);
/* True if it is a CPU clock of the program and virtual processors are processes, each with its own
 * clock. */
bool kbi_clock_is_programs(clockid_t clock);
/* Returns the CPU time that t has used, ns. */
uint64_t kbi_clock_read(struct kb_thread *t);
/* Makes clock_gettime, clock_getres and getrusage for syscall(); *r: the kernel's result. False:
 * the call is not about such a clock. */
bool kbi_clock_by_number(long n, const long *a, long *r);

#endif
