/* posix/futex_owner.h - futex system calls with priority inheritance: the word has its owner's number.
 * Callers: posix/futex. Waits may switch. */
#ifndef KBI_FUTEX_OWNER_H
#define KBI_FUTEX_OWNER_H

#include <linux/futex.h>

#include "posix/posix.h"

enum { KBI_FUTEX_OP = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) };

/* SYS_futex's arguments. */
struct kbi_futex {
	const uint32_t *addr;
	int op;
	uint32_t value;
	uintptr_t timeout; /* or the second number */
	const uint32_t *addr2;
	uint32_t value3;
};

/* As it is. */
long kbi_futex_kernel(const struct kbi_futex *c);
/* A wait, FUTEX_WAIT or FUTEX_WAIT_BITSET, as a thread waits, whatever the page. */
KBI_SWITCHES long kbi_futex_parked(const struct kbi_futex *c);
/* A system call that may wait, of that number: a lightweight thread's virtual processor goes on with others. */
KBI_SWITCHES long kbi_futex_in_kernel(long n, const long a[6]);
/* An operation that is neither a wait, a wake nor a requeue without owners. shared: other processes may have the word. */
KBI_SWITCHES long kbi_futex_owned(const struct kbi_futex *c, bool shared);
/* Any operation, in a process without lightweight threads: the kernel's, but where another process's have the word. */
long kbi_futex_alone(const struct kbi_futex *c);

#endif
