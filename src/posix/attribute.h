/* posix/attribute.h - state that the kernel keeps for each thread and that a thread changes for
 * itself: filters, privileges, namespaces, timer slack and the like. A lightweight thread gets a
 * kernel thread of its own first (posix/bind); doc/posix.md lists the calls. Callers:
 * posix/identity, for calls by their numbers; programs. Never switches. */
#ifndef KBI_ATTRIBUTE_H
#define KBI_ATTRIBUTE_H

#include <stdbool.h>

/* Prepares prctl(option, a, ...): the caller gets a kernel thread of its own if the option needs
 * one. True: make the call. False: there are no more kernel threads; *r: the kernel's result. */
bool kbi_attribute_may_set(int option, unsigned long a, long *r);
/* Prepares or makes the call of number n. True: it has been made, or cannot be; *r: the kernel's
 * result. False: make the call. */
bool kbi_attribute_by_number(long n, const long *a, long *r);

#endif
