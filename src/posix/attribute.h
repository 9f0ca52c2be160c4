/* posix/attribute.h - what the kernel keeps for each thread and a thread changes of its own: filters, privileges,
 * namespaces, timer slack and the like. A lightweight thread keeps its kernel thread before it does (posix/bind);
 * doc/posix.md lists what there is. Callers: posix/identity, for calls by their numbers; programs. Never switches. */
#ifndef KBI_ATTRIBUTE_H
#define KBI_ATTRIBUTE_H

#include <stdbool.h>

/* prctl(option, a, ...): the caller keeps its kernel thread if that takes one. False: it has been dealt with, or cannot
 * be; *r as the kernel gives it. */
bool kbi_attribute_may_set(int option, unsigned long a, long *r);
/* A call by its number, with its arguments. True: it has been made, or cannot be; *r as the kernel gives it. */
bool kbi_attribute_by_number(long n, const long *a, long *r);

#endif
