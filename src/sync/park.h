/* sync/park.h - waiting for a word to change, by its address: the meaning of futex(2) for threads of this
 * process. The word's owner needs nothing but the word; the waiters stand in a hash table of queues.
 * Callers: sync/once, posix (SYS_futex). Calls waitq. Wait may switch, the others never. */
#ifndef KBI_PARK_H
#define KBI_PARK_H

#include "sync/waitq.h"

#define KBI_PARK_ANY UINT32_MAX /* the bitset that matches all */

/* Sleeps if *addr is `expected`, until a wake of this address whose bitset has a bit in common. The look
 * at *addr and the queueing are one step for wakers: who changes *addr before kbi_park_wake loses no
 * sleeper. 0: woken (never spuriously); EAGAIN: *addr was different; ETIMEDOUT; what until.stop said;
 * EINVAL: no bit. */
KBI_SWITCHES int kbi_park_wait_until(const uint32_t *addr, uint32_t expected, uint32_t bitset,
				     struct kbi_until until);
KBI_SWITCHES int kbi_park_wait(const uint32_t *addr, uint32_t expected, uint32_t bitset, uint64_t deadline);

/* May somebody sleep at addr, which the caller has changed? False: a wake-up would find nobody. Takes no lock. */
bool kbi_park_has(const uint32_t *addr);

/* Wakes up to n sleepers of addr, first come, first woken; how many. UINT_MAX or INT_MAX says all: they are to go on at the
 * same time as the caller does, after a barrier most likely. */
unsigned kbi_park_wake(const uint32_t *addr, unsigned n, uint32_t bitset);
/* The same for a kernel thread that has no descriptor, or no use for it: self is NULL then. */
unsigned kbi_park_wake_by(struct kbi_task *self, const uint32_t *addr, unsigned n, uint32_t bitset);

/* Wakes up to n_wake sleepers of addr and makes up to n_move others sleepers of `to`. compare: only if *addr
 * is still *compare, else EAGAIN; may be NULL. *woken and *moved: how many; may be NULL. */
int kbi_park_requeue(const uint32_t *addr, unsigned n_wake, const uint32_t *to, unsigned n_move,
		     const uint32_t *compare, unsigned *woken, unsigned *moved);

/* In the child of fork: nobody is parked. */
void kbi_park_orphan(void);

#endif
