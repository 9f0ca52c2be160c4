/* posix/affinity.h - the processors on which a thread may run. A lightweight thread whose affinity
 * differs from the VPs' keeps a kernel thread that has this affinity; the threads that it creates
 * inherit it (posix/bind).
 * Callers: programs; posix/identity, kernel, thread. Setting may switch. */
#ifndef KBI_AFFINITY_H
#define KBI_AFFINITY_H

#include "posix/posix.h"

/* *given: attr contains an affinity; *other: that affinity is not the VPs'. Returns 0, or the
 * kernel's error. */
int kbi_affinity_of(const pthread_attr_t *attr, bool *given, bool *other);
/* sched_setaffinity and sched_getaffinity by syscall(). *r: the result as the kernel gives it.
 * False: the call is for the kernel. */
KBI_SWITCHES bool kbi_affinity_by_number(long n, const long *a, long *r);
/* Called last at the end of the calling thread: clears its number, by which its record is found. */
void kbi_affinity_thread_ends(void);

#endif
