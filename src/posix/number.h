/* posix/number.h - system calls about a thread, by the number that gettid gives for it. The kernel
 * does not know the number of a lightweight thread: it is asked about the kernel thread that the
 * thread keeps, about the thread's deputy (posix/deputy), or about any virtual processor's.
 * posix/number.def lists the calls. Callers: posix/identity; programs, by the names of the calls.
 * Never switches. */
#ifndef KBI_NUMBER_H
#define KBI_NUMBER_H

#include "base/base.h"

/* Makes the system call n if it takes the number of a lightweight thread; *r: the kernel's result.
 * False: it does not, or the whole call is for the kernel. */
bool kbi_number_call(long n, const long *a, long *r);

#endif
