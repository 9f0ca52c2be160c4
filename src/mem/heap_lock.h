/* mem/heap_lock.h - the heap's locks: a word, and the kernel when somebody waits. They are held for some hundred
 * instructions, never across a switch: the heap's code is not left by preemption (its callers' promise), so a kernel
 * thread that waits here waits for another one, not for a thread behind it.
 * 0 free, 1 held, 2 held and perhaps waited for. Callers: the heap's units. */
#ifndef KBI_HEAP_LOCK_H
#define KBI_HEAP_LOCK_H

#include "arch/arch.h"
#include "base/atom.h"
#include "os/sys.h"

enum { KBI_HEAP_LOCK_SPINS = 100 };

static inline void kbi_heap_lock_slow(a32 *lock)
{
	for (unsigned i = 0; i < KBI_HEAP_LOCK_SPINS; i++) {
		uint32_t free = 0;

		/* acquire: partner is the release in kbi_heap_unlock; so below */
		if (a_load_rlx(lock) == 0 && a_cas_acq(lock, &free, 1))
			return;
		kbi_cpu_relax();
	}
	while (a_xchg_acq(lock, 2) != 0)
		kbi_sys_futex_wait(lock, 2, NULL);
}

static inline void kbi_heap_lock(a32 *lock)
{
	uint32_t free = 0;

	/* acquire: partner is the release in kbi_heap_unlock */
	if (kbi_unlikely(!a_cas_acq(lock, &free, 1)))
		kbi_heap_lock_slow(lock);
}

static inline void kbi_heap_unlock(a32 *lock)
{
	/* release: partner is the acquire of the next holder */
	if (kbi_unlikely(a_xchg_rel(lock, 0) == 2))
		kbi_sys_futex_wake(lock, 1);
}

#endif
