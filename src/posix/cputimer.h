/* posix/cputimer.h - timers for threads by their numbers, and on their CPU clocks. A timer on the clock of another
 * lightweight thread is kept here: the kernel has no such clock. It has a timer of the kernel's beside it, never set,
 * whose id it uses. Callers: posix/identity; programs, by the names of the calls. Never switches. */
#ifndef KBI_CPUTIMER_H
#define KBI_CPUTIMER_H

#include "posix/posix.h"

/* timer_create and its kin by syscall(); *r as kernels give it. False: all of it is the kernel's affair. */
bool kbi_cputimer_by_number(long n, const long *a, long *r);

#endif
