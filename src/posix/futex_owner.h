/* posix/futex_owner.h - futex system calls with priority inheritance: the word contains its owner's
 * number. Callers: posix/futex. Waits may switch. */
#ifndef KBI_FUTEX_OWNER_H
#define KBI_FUTEX_OWNER_H

#include <linux/futex.h>

#include "posix/posix.h"

enum { KBI_FUTEX_OP = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) };

/* The arguments of SYS_futex. */
struct kbi_futex {
	const uint32_t *addr;
	int op;
	uint32_t value;
	uintptr_t timeout; /* or the second count */
	const uint32_t *addr2;
	uint32_t value3;
};

/* Makes the call in the kernel, unchanged. */
long kbi_futex_kernel(const struct kbi_futex *c);
/* Parks the caller for FUTEX_WAIT or FUTEX_WAIT_BITSET, whichever mapping the word is in. */
KBI_SWITCHES long kbi_futex_parked(const struct kbi_futex *c);
/* Makes the system call n, which may wait; a lightweight thread leaves its virtual processor to
 * other threads. */
KBI_SWITCHES long kbi_futex_in_kernel(long n, const long a[6]);
/* Makes an operation other than a wait, a wake, or a requeue without owners. shared: other
 * processes may have the word. */
KBI_SWITCHES long kbi_futex_owned(const struct kbi_futex *c, bool shared);
/* Makes any operation in a process without lightweight threads: in the kernel, unless a lightweight
 * thread of another process may own the word. */
long kbi_futex_alone(const struct kbi_futex *c);

#endif
