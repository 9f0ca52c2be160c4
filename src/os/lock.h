/* os/lock.h - waiting for another kernel thread to go a few hundred instructions further: for a lock, and for a word that
 * says how far it has come. Who waits looks for a moment and then sleeps in the kernel. It does not yield: where it has a
 * real-time priority and the other has not, and both are on one processor, that would be for ever. Never held across a
 * switch. Callers: os, mem, core, io, posix. */
#ifndef KBI_LOCK_H
#define KBI_LOCK_H

#include "arch/arch.h"
#include "base/atom.h"
#include "os/sys.h"

enum { KBI_LOCK_FREE, KBI_LOCK_HELD, KBI_LOCK_AWAITED, KBI_LOCK_SPINS = 100 };

static inline void kbi_lock_take_slow(a32 *lock)
{
	for (unsigned i = 0; i < KBI_LOCK_SPINS; i++) {
		uint32_t is_free = KBI_LOCK_FREE;

		/* acquire: partner is the release in kbi_lock_leave; so below */
		if (a_load_rlx(lock) == KBI_LOCK_FREE && a_cas_acq(lock, &is_free, KBI_LOCK_HELD))
			return;
		kbi_cpu_relax();
	}
	while (a_xchg_acq(lock, KBI_LOCK_AWAITED) != KBI_LOCK_FREE)
		kbi_sys_futex_wait(lock, KBI_LOCK_AWAITED, NULL);
}

static inline void kbi_lock_take(a32 *lock)
{
	uint32_t is_free = KBI_LOCK_FREE;

	/* acquire: partner is the release in kbi_lock_leave */
	if (kbi_unlikely(!a_cas_acq(lock, &is_free, KBI_LOCK_HELD)))
		kbi_lock_take_slow(lock);
}

/* For who may not wait: its holder may stand still until the caller goes on. */
static inline bool kbi_lock_try(a32 *lock)
{
	uint32_t is_free = KBI_LOCK_FREE;

	return a_cas_acq(lock, &is_free, KBI_LOCK_HELD); /* acquire: as above */
}

static inline void kbi_lock_leave(a32 *lock)
{
	/* release: partner is the acquire of the next holder */
	if (kbi_unlikely(a_xchg_rel(lock, KBI_LOCK_FREE) == KBI_LOCK_AWAITED))
		kbi_sys_futex_wake(lock, 1);
}

/* Waits while *word has the value, which another kernel thread is about to change by kbi_lock_tell. What it is then. */
static inline uint32_t kbi_lock_await(a32 *word, uint32_t value)
{
	/* the runtime's start may give this memory another identity in the kernel */
	const struct timespec patience = { 0, 20000000 };
	uint32_t now;

	/* acquire: partner is the release in kbi_lock_tell */
	for (unsigned i = 0; (now = a_load_acq(word)) == value; i++) {
		if (i < KBI_LOCK_SPINS)
			kbi_cpu_relax();
		else
			kbi_sys_futex_wait(word, value, &patience);
	}
	return now;
}

static inline void kbi_lock_tell(a32 *word, uint32_t value)
{
	/* release: partner is the acquire in kbi_lock_await, and of who only looks */
	a_store_rel(word, value);
	kbi_sys_futex_wake(word, INT32_MAX);
}

#endif
