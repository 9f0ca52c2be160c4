/* posix/affinity.h - the processors that a thread may run on. A lightweight thread whose affinity is not that of the
 * virtual processors keeps a kernel thread, which has it, and so has what it creates (posix/bind).
 * Callers: programs; posix/identity, posix/thread. Setting may switch. */
#ifndef KBI_AFFINITY_H
#define KBI_AFFINITY_H

#include "posix/posix.h"

/* *given: there is one in attr; *other: it is not the virtual processors'. 0, or what the kernel says against it. */
int kbi_affinity_of(const pthread_attr_t *attr, bool *given, bool *other);
/* sched_setaffinity and sched_getaffinity by syscall(). False: the kernel's affair; *r as the kernel gives it. */
KBI_SWITCHES bool kbi_affinity_by_number(long n, const long *a, long *r);
/* The calling thread ends, last of all: its number is nobody's, and none finds its record by that. */
void kbi_affinity_thread_ends(void);

#endif
