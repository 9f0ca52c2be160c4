/* sync/park.h - waiting for a word to change, by the word's address: the meaning of futex(2) for
 * threads of this process. The owner of the word needs nothing but the word; the waiters stand in a
 * hash table of queues. The bucket locks are taken inside np brackets.
 * Callers: sync/once, sync/future, posix (SYS_futex). Calls waitq. Waiting may
 * switch, waking never switches. */
#ifndef KBI_PARK_H
#define KBI_PARK_H

#include "sync/waitq.h"

#define KBI_PARK_ANY UINT32_MAX /* the bitset that matches every sleeper */

/* Sleeps if *addr is `expected`, until a wake of this address whose bitset has a bit in common. The
 * comparison and the queueing are one step for wakers: a thread that changes *addr before
 * kbi_park_wake misses no sleeper. Returns 0: woken (never spuriously); EAGAIN: *addr was
 * different; ETIMEDOUT; the result of until.stop; EINVAL: the bitset is empty. */
KBI_SWITCHES int kbi_park_wait_until(const uint32_t *addr, uint32_t expected, uint32_t bitset,
				     struct kbi_until until);
KBI_SWITCHES int kbi_park_wait(const uint32_t *addr, uint32_t expected, uint32_t bitset,
	uint64_t deadline);

/* Returns whether a thread may sleep at addr, which the caller has changed. False: a wake-up would
 * find no sleeper. Takes no lock. */
bool kbi_park_has(const uint32_t *addr);

/* Wakes up to n sleepers of addr in the order in which they came. Returns how many. n
 * of UINT_MAX or INT_MAX means all: the sleepers should run in parallel to the caller,
 * most likely after a barrier. */
unsigned kbi_park_wake(const uint32_t *addr, unsigned n, uint32_t bitset);
/* As kbi_park_wake, for a kernel thread that has no descriptor or no use
 * for it: self is NULL then. */
unsigned kbi_park_wake_by(struct kbi_task *self, const uint32_t *addr, unsigned n, uint32_t bitset);

/* Wakes up to n_wake sleepers of addr and makes up to n_move further sleepers of addr sleepers of
 * `to`. compare: only if *addr is still *compare, else returns EAGAIN; may be NULL. Stores the
 * numbers of woken and moved sleepers in *woken and *moved; both may be NULL. */
int kbi_park_requeue(const uint32_t *addr, unsigned n_wake, const uint32_t *to, unsigned n_move,
		     const uint32_t *compare, unsigned *woken, unsigned *moved);

/* Empties the table in the child of fork: no thread is parked. */
void kbi_park_orphan(void);

#endif
