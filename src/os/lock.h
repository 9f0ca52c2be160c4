/* os/lock.h - waiting for another kernel thread to advance a few hundred instructions: a lock, and
 * a word that tells its progress. A waiter spins for a moment and then sleeps in the kernel. It
 * does not yield: a waiter with a real-time priority would yield for ever if the holder has none
 * and both are on one processor. Never held across a switch.
 * Callers: os, libc, mem, core, sync/crew, space, io, posix. */
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

		/* acquire: pairs with the release in kbi_lock_leave; the exchange below, too */
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

	/* acquire: pairs with the release in kbi_lock_leave */
	if (kbi_unlikely(!a_cas_acq(lock, &is_free, KBI_LOCK_HELD)))
		kbi_lock_take_slow(lock);
}

/* Takes the lock if it is free, and returns true. For callers that must not wait, because the
 * holder may stand still until the caller continues. */
static inline bool kbi_lock_try(a32 *lock)
{
	uint32_t is_free = KBI_LOCK_FREE;

	/* acquire: pairs with the release in kbi_lock_leave */
	return a_cas_acq(lock, &is_free, KBI_LOCK_HELD);
}

static inline void kbi_lock_leave(a32 *lock)
{
	/* release: pairs with the acquire of the next holder in kbi_lock_take */
	if (kbi_unlikely(a_xchg_rel(lock, KBI_LOCK_FREE) == KBI_LOCK_AWAITED))
		kbi_sys_futex_wake(lock, 1);
}

/* Waits while *word == value; another kernel thread is about to change the word by kbi_lock_tell.
 * Returns the new value. */
static inline uint32_t kbi_lock_await(a32 *word, uint32_t value)
{
	/* the start of the runtime may give this memory another identity in the kernel */
	const struct timespec patience = { 0, 20000000 };
	uint32_t now;

	/* acquire: pairs with the release in kbi_lock_tell */
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
	/* release: pairs with the acquire in kbi_lock_await, and with acquire loads of readers that do
	 * not wait */
	a_store_rel(word, value);
	kbi_sys_futex_wake(word, INT32_MAX);
}

#endif
