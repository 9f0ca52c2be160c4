/* os/lock.h - a lock for a few hundred instructions, on any kernel thread: who finds it held lets the kernel run others.
 * Never held across a switch. Callers: mem, core, posix. */
#ifndef KBI_LOCK_H
#define KBI_LOCK_H

#include "base/atom.h"
#include "os/sys.h"

static inline void kbi_lock_take(a32 *lock)
{
	uint32_t free = 0;
	unsigned n = 0;

	/* acquire: partner is the release in kbi_lock_leave */
	while (!a_cas_acq(lock, &free, 1)) {
		free = 0;
		kbi_sys_yield_to_holder(n++);
	}
}

/* For who may not wait: its holder may stand still until the caller goes on. */
static inline bool kbi_lock_try(a32 *lock)
{
	uint32_t free = 0;

	return a_cas_acq(lock, &free, 1); /* acquire: as above */
}

static inline void kbi_lock_leave(a32 *lock)
{
	/* release: partner is the acquire in kbi_lock_take */
	a_store_rel(lock, 0);
}

#endif
