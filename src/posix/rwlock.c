/* posix/rwlock.c - pthread_rwlock_*. Process-shared locks have libc's mark (__shared, which our
 * locks never set) and are libc's. The preference is read from __flags, where libc's static
 * initialisers put it: readers may overtake waiting writers unless the lock says otherwise, so a
 * thread may take a read lock twice.
 * Callers: programs. Locks may switch. A lightweight thread waits for a lock of libc by trying
 * (posix/libc_mutex), then in libc, on its kernel thread or a stand-in (posix/standin_libc). */
#include "posix/posix.h"

#include <limits.h>
#include <string.h>

#include "sync/rwlock.h"

_Static_assert(sizeof(kb_rwlock_t) <= offsetof(pthread_rwlock_t, __data.__flags),
	"libc's preference stays clear");
_Static_assert(_Alignof(kb_rwlock_t) <= _Alignof(pthread_rwlock_t), "it lies in libc's bytes");
_Static_assert(offsetof(kb_rwlock_t, shared) == offsetof(pthread_rwlock_t, __data.__shared),
	"libc's mark");

static inline bool is_libcs_rwlock(const pthread_rwlock_t *l)
{
	return kbi_unlikely(l->__data.__shared != 0);
}

/* Returns our lock before a wait or a wake-up, with its kind set: concurrent first callers all
 * store an equal value. */
static inline kb_rwlock_t *rwlock_of_pthread(pthread_rwlock_t *l)
{
	kb_rwlock_t *k = (kb_rwlock_t *)(void *)l;
	uint32_t kind = l->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
		? KB_RWLOCK_PREFER_WRITER
		: KB_RWLOCK_PREFER_READER;

	if (kbi_unlikely(__atomic_load_n(&k->kind, __ATOMIC_RELAXED) != kind))
		__atomic_store_n(&k->kind, kind, __ATOMIC_RELAXED);
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_rwlock(k);
	return k;
}

KBI_POSIX_API int pthread_rwlock_init(pthread_rwlock_t *restrict l,
	const pthread_rwlockattr_t *restrict attr)
{
	int shared = PTHREAD_PROCESS_PRIVATE, kind = PTHREAD_RWLOCK_DEFAULT_NP;

	if (attr) {
		pthread_rwlockattr_getpshared(attr, &shared);
		pthread_rwlockattr_getkind_np(attr, &kind);
	}
	if (shared != PTHREAD_PROCESS_PRIVATE)
		return kbi_shared_is_known(KBI_SHARED_RWLOCK) ? kbi_libc()->pthread_rwlock_init(l, attr) :
								kbi_shared_refuse(KBI_SHARED_RWLOCK);
	memset(l, 0, sizeof(*l));
	l->__data.__flags = (unsigned)kind;
	return 0;
}

KBI_POSIX_API int pthread_rwlock_destroy(pthread_rwlock_t *l)
{
	if (is_libcs_rwlock(l))
		return kbi_libc()->pthread_rwlock_destroy(l);
	return 0; /* libc does not check whether it is held */
}

KBI_POSIX_API int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
	if (is_libcs_rwlock(l))
		return kbi_libc()->pthread_rwlock_tryrdlock(l);
	return kb_rwlock_tryrdlock(rwlock_of_pthread(l));
}

KBI_POSIX_API int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
	if (is_libcs_rwlock(l))
		return kbi_libc()->pthread_rwlock_trywrlock(l);
	return kb_rwlock_trywrlock(rwlock_of_pthread(l));
}

/* Unlocks and wakes all waiters here: many readers may go on at once. The lock may be gone after
 * the unlock: only its address is used. */
static int unlock_libcs_rwlock(pthread_rwlock_t *l)
{
	int e = kbi_libc()->pthread_rwlock_unlock(l);

	kbi_libc_mutex_tell(&l->__data.__readers, INT_MAX);
	return e;
}

KBI_POSIX_API int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	if (is_libcs_rwlock(l))
		return unlock_libcs_rwlock(l);
	(void)kb_rwlock_unlock(rwlock_of_pthread(l)); /* of a lock that is not held: 0, as libc */
	return 0;
}

/* ---- waiting ------------------------------------------------------------------------------ */

static int try_libcs_rdlock(void *l)
{
	return kbi_libc()->pthread_rwlock_tryrdlock(l);
}

static int try_libcs_wrlock(void *l)
{
	return kbi_libc()->pthread_rwlock_trywrlock(l);
}

/* Waits for our lock. A signal handler may run meanwhile. EINTR: a cancellation came, or a kernel
 * thread's handler ran; the thread queues again. */
static int wait_our_rwlock(kb_rwlock_t *l, bool write, uint64_t deadline)
{
	int e;

	do {
		e = write ? kbi_rwlock_wrlock(l, kbi_posix_until_granted(deadline)) :
			    kbi_rwlock_rdlock(l, kbi_posix_until_granted(deadline));
		kbi_signal_resumed();
	} while (e == EINTR);
	return e;
}

/* True if the caller holds it for writing: libc's trylock returns EBUSY where its lock returns
 * EDEADLK. */
static bool is_rwlock_writer(const pthread_rwlock_t *l)
{
	return l->__data.__cur_writer != 0 && l->__data.__cur_writer == kbi_posix_owner_tid();
}

static int wait_libcs_rwlock(pthread_rwlock_t *l, bool write, clockid_t clock,
	const struct timespec *abstime)
{
	return write ? kbi_libc_mutex_wait_long(try_libcs_wrlock, kbi_standin_libc_write, l,
		&l->__data.__readers, clock, abstime) :
		       kbi_libc_mutex_wait_long(try_libcs_rdlock, kbi_standin_libc_read, l,
			&l->__data.__readers, clock, abstime);
}

static int lock_rwlock(pthread_rwlock_t *l, bool write)
{
	if (!is_libcs_rwlock(l))
		return wait_our_rwlock(rwlock_of_pthread(l), write, KBI_FOREVER);
	if (!kbi_posix_light())
		return write ? kbi_libc()->pthread_rwlock_wrlock(l) : kbi_libc()->pthread_rwlock_rdlock(l);
	if (is_rwlock_writer(l))
		return EDEADLK;
	return wait_libcs_rwlock(l, write, CLOCK_MONOTONIC, NULL);
}

static int lock_rwlock_until(pthread_rwlock_t *l, bool write, clockid_t clock,
	const struct timespec *abstime)
{
	int e;

	if (!kbi_posix_clock_ok(clock) || !kbi_posix_time_ok(abstime))
		return EINVAL;
	if (is_libcs_rwlock(l) && !kbi_posix_light())
		return write ? kbi_libc()->pthread_rwlock_clockwrlock(l, clock, abstime) :
			       kbi_libc()->pthread_rwlock_clockrdlock(l, clock, abstime);
	if (is_libcs_rwlock(l))
		return is_rwlock_writer(l) ? EDEADLK : wait_libcs_rwlock(l, write, clock, abstime);
	e = write ? kb_rwlock_trywrlock(rwlock_of_pthread(l)) :
		kb_rwlock_tryrdlock(rwlock_of_pthread(l));
	if (e != EBUSY)
		return e;
	return wait_our_rwlock(rwlock_of_pthread(l), write, kbi_posix_deadline(clock, abstime));
}

KBI_POSIX_API int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	return lock_rwlock(l, false);
}

KBI_POSIX_API int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	return lock_rwlock(l, true);
}

KBI_POSIX_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l,
	const struct timespec *restrict abstime)
{
	return lock_rwlock_until(l, false, CLOCK_REALTIME, abstime);
}

KBI_POSIX_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l,
	const struct timespec *restrict abstime)
{
	return lock_rwlock_until(l, true, CLOCK_REALTIME, abstime);
}

KBI_POSIX_API int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict l, clockid_t clock,
					     const struct timespec *restrict abstime)
{
	return lock_rwlock_until(l, false, clock, abstime);
}

KBI_POSIX_API int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict l, clockid_t clock,
					     const struct timespec *restrict abstime)
{
	return lock_rwlock_until(l, true, clock, abstime);
}

KBI_POSIX_ALIAS(__pthread_rwlock_init, pthread_rwlock_init);
KBI_POSIX_ALIAS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
KBI_POSIX_ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
KBI_POSIX_ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
KBI_POSIX_ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
KBI_POSIX_ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
KBI_POSIX_ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);
