/* posix/libwait.h - with the option libcalls=patch, where virtual processors are kernel threads: a
 * lightweight thread that waits for a lock inside libc is parked, as at any lock of ours. Reasons:
 * doc/why/leave-anywhere.md. x86-64, glibc. Callers: posix/thread. */
#ifndef KBI_POSIX_LIBWAIT_H
#define KBI_POSIX_LIBWAIT_H

#include "posix/posix.h"

/* Replaces libc's futex calls. Call once, before the runtime starts other kernel threads. If it
 * cannot be done, a message says so, and libc's waits stay in the kernel. */
void kbi_libwait_begin(void);

#endif
