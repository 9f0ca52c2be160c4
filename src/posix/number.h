/* posix/number.h - system calls about a thread, by the number that gettid gives it. The kernel does not know it: asked is
 * about the kernel thread that the thread keeps, about that of its deputy (posix/deputy), or about one like all others.
 * posix/number.def has the calls. Callers: posix/identity; programs, by the names of the calls. Never switches. */
#ifndef KBI_NUMBER_H
#define KBI_NUMBER_H

#include "base/base.h"

/* The system call n, if it takes a thread's number; *r as kernels give it. False: it is none, or all of it is the kernel's
 * affair. */
bool kbi_number_call(long n, const long *a, long *r);

#endif
