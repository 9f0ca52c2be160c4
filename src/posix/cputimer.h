/* posix/cputimer.h - timers for threads by their numbers, and on their CPU clocks. A timer on the
 * clock of another lightweight thread is kept here, since the kernel has no such clock. It reserves
 * a timer of the kernel, never set, and uses its id. Callers: posix/identity; programs, by the
 * names of the calls. Never switches. */
#ifndef KBI_CPUTIMER_H
#define KBI_CPUTIMER_H

#include "posix/posix.h"

/* Makes timer_create and the calls on timers for syscall(); *r: the kernel's result. False: the
 * whole call is for the kernel. */
bool kbi_cputimer_by_number(long n, const long *a, long *r);

#endif
