/* posix/mutex.c - pthread_mutex_* and mtx_*. The kind, which libc's headers put at a fixed place
 * also in static initialisers, decides whose a mutex is: robust, PI, PP and process-shared mutexes
 * stay libc's (posix/libc_mutex), all further ones are kb_mutex_t in the same bytes. Adaptive
 * counts as normal. A destroyed mutex has a kind of its own: libc's functions return EINVAL for it.
 * Callers: programs. Locks may switch. */
#include "posix/posix.h"

#include <string.h>

#include "sync/mutex.h"

/* Bits of libc's kind: robust, priority inheritance, priority protection, process-shared; and the
 * kind that libc gives to a destroyed mutex, which has all these bits. */
enum { KIND_LIBC = 16 | 32 | 64 | 128, KIND_DESTROYED = -1 };

_Static_assert(sizeof(kb_mutex_t) <= sizeof(pthread_mutex_t), "a mutex lies in libc's bytes");
_Static_assert(_Alignof(kb_mutex_t) <= _Alignof(pthread_mutex_t), "a mutex lies in libc's bytes");
_Static_assert(offsetof(kb_mutex_t, kind) == offsetof(pthread_mutex_t, __data.__kind),
	"static initialisers");
_Static_assert((int)KB_MUTEX_NORMAL == PTHREAD_MUTEX_NORMAL, "static initialisers");
_Static_assert((int)KB_MUTEX_RECURSIVE == PTHREAD_MUTEX_RECURSIVE, "static initialisers");
_Static_assert((int)KB_MUTEX_ERRORCHECK == PTHREAD_MUTEX_ERRORCHECK, "static initialisers");
_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t is a pthread mutex");

static inline kb_mutex_t *mutex_of_pthread(pthread_mutex_t *m)
{
	return (kb_mutex_t *)(void *)m;
}

static inline bool is_libcs_mutex(const pthread_mutex_t *m)
{
	return kbi_unlikely(m->__data.__kind & KIND_LIBC);
}

/* ---- making ------------------------------------------------------------------------------- */

static bool attr_wants_libc(const pthread_mutexattr_t *attr)
{
	int shared = 0, protocol = 0, robust = 0;

	pthread_mutexattr_getpshared(attr, &shared);
	pthread_mutexattr_getprotocol(attr, &protocol);
	pthread_mutexattr_getrobust(attr, &robust);
	return shared != PTHREAD_PROCESS_PRIVATE || protocol != PTHREAD_PRIO_NONE ||
		robust != PTHREAD_MUTEX_STALLED;
}

static KBI_NOINLINE int init_libcs(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	return kbi_shared_is_known(KBI_SHARED_MUTEX) ? kbi_libc()->pthread_mutex_init(m, attr) :
						       kbi_shared_refuse(KBI_SHARED_MUTEX);
}

static enum kb_mutex_kind kind_of_type(int type)
{
	switch (type) {
	case PTHREAD_MUTEX_RECURSIVE:
		return KB_MUTEX_RECURSIVE;
	case PTHREAD_MUTEX_ERRORCHECK:
		return KB_MUTEX_ERRORCHECK;
	default:
		return KB_MUTEX_NORMAL;
	}
}

KBI_POSIX_API int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	int type = PTHREAD_MUTEX_DEFAULT;

	if (attr) {
		if (attr_wants_libc(attr))
			return init_libcs(m, attr);
		pthread_mutexattr_gettype(attr, &type);
	}
	memset(m, 0, sizeof(*m));
	return kb_mutex_init(mutex_of_pthread(m), kind_of_type(type));
}

KBI_POSIX_API int pthread_mutex_destroy(pthread_mutex_t *m)
{
	int e;

	if (is_libcs_mutex(m))
		return kbi_libc()->pthread_mutex_destroy(m);
	e = kb_mutex_destroy(mutex_of_pthread(m));
	if (e == 0)
		m->__data.__kind = KIND_DESTROYED;
	return e;
}

/* ---- locking ------------------------------------------------------------------------------ */

static inline bool quick_lock(pthread_mutex_t *m)
{
	return kbi_likely(kbi_mutex_quick_lock(mutex_of_pthread(m), kbi_self_raw()));
}

/* A signal handler may run while the thread waits; then the thread queues again. */
static KBI_NOINLINE int lock_mutex_slow(kb_mutex_t *m, uint64_t deadline)
{
	int e;

	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_mutex(m);
	do {
		e = kbi_mutex_lock(m, kbi_posix_until(deadline));
		kbi_signal_resumed();
	} while (e == EINTR);
	return e;
}

static int lock_mutex_until(pthread_mutex_t *m, clockid_t clock, const struct timespec *abstime)
{
	int e;

	if (quick_lock(m))
		return 0;
	if (is_libcs_mutex(m))
		return kbi_libc_mutex_lock(m, clock, abstime);
	e = kbi_mutex_trylock(mutex_of_pthread(m));
	if (e != EBUSY)
		return e;
	if (!kbi_posix_clock_ok(clock) || !kbi_posix_time_ok_or_over(abstime))
		return EINVAL;
	return lock_mutex_slow(mutex_of_pthread(m), kbi_posix_deadline(clock, abstime));
}

KBI_POSIX_API int pthread_mutex_trylock(pthread_mutex_t *m)
{
	int e;

	if (quick_lock(m))
		return 0;
	if (is_libcs_mutex(m))
		return kbi_libc_mutex_trylock(m);
	e = kbi_mutex_trylock(mutex_of_pthread(m));
	if (kbi_likely(e != EBUSY) || !kbi_posix_forked)
		return e;
	kbi_orphan_mutex(mutex_of_pthread(m));
	return kbi_mutex_trylock(mutex_of_pthread(m));
}

static KBI_NOINLINE int lock_general(pthread_mutex_t *m)
{
	int e;

	if (is_libcs_mutex(m))
		return kbi_libc_mutex_lock(m, CLOCK_MONOTONIC, NULL);
	e = kbi_mutex_trylock(mutex_of_pthread(m));
	if (kbi_likely(e != EBUSY))
		return e;
	return lock_mutex_slow(mutex_of_pthread(m), KBI_FOREVER);
}

/* Its place in the cache line costs or saves a seventh of its time. */
KBI_POSIX_API KBI_ALIGNED(KBI_CACHE_LINE) int pthread_mutex_lock(pthread_mutex_t *m)
{
	return quick_lock(m) ? 0 : lock_general(m);
}

KBI_POSIX_API int pthread_mutex_clocklock(pthread_mutex_t *restrict m, clockid_t clock,
					  const struct timespec *restrict abstime)
{
	if (!kbi_posix_clock_ok(clock))
		return EINVAL;
	return lock_mutex_until(m, clock, abstime);
}

KBI_POSIX_API int pthread_mutex_timedlock(pthread_mutex_t *restrict m,
	const struct timespec *restrict abstime)
{
	return lock_mutex_until(m, CLOCK_REALTIME, abstime);
}

static KBI_NOINLINE int unlock_general(pthread_mutex_t *m)
{
	int e;

	if (is_libcs_mutex(m))
		return kbi_libc_mutex_unlock(m);
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_mutex(mutex_of_pthread(m));
	e = kbi_mutex_unlock(mutex_of_pthread(m));
	/* unlocking an unlocked normal mutex is undefined in POSIX and returns 0 in libc */
	return kbi_unlikely(e) && kind_of_type(m->__data.__kind & 3) == KB_MUTEX_NORMAL ? 0 : e;
}

/* If there is no waiter to wake, there is none to forget after a fork, either. */
KBI_POSIX_API KBI_ALIGNED(KBI_CACHE_LINE) int pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (kbi_likely(kbi_mutex_quick_unlock(mutex_of_pthread(m), kbi_self_raw())))
		return 0;
	return unlock_general(m);
}

/* ---- libc's kinds only -------------------------------------------------------------------- */

KBI_POSIX_API int pthread_mutex_consistent(pthread_mutex_t *m)
{
	return is_libcs_mutex(m) ? kbi_libc()->pthread_mutex_consistent(m) : EINVAL;
}

/* libc locks the mutex inside; if we hold it already that lock nests and cannot wait. */
KBI_POSIX_API int pthread_mutex_setprioceiling(pthread_mutex_t *restrict m, int ceiling,
	int *restrict old)
{
	return is_libcs_mutex(m) ? kbi_libc()->pthread_mutex_setprioceiling(m, ceiling, old)
		: EINVAL;
}

KBI_POSIX_ALIAS(pthread_mutex_consistent_np, pthread_mutex_consistent);
KBI_POSIX_ALIAS(__pthread_mutex_init, pthread_mutex_init);
KBI_POSIX_ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
KBI_POSIX_ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
KBI_POSIX_ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
KBI_POSIX_ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);

/* ---- C11 ---------------------------------------------------------------------------------- */

static inline pthread_mutex_t *pthread_of_mtx(mtx_t *m)
{
	return (pthread_mutex_t *)(void *)m;
}

static int c11_result(int e)
{
	switch (e) {
	case 0:
		return thrd_success;
	case EBUSY:
		return thrd_busy;
	case ETIMEDOUT:
		return thrd_timedout;
	case ENOMEM:
		return thrd_nomem;
	default:
		return thrd_error;
	}
}

KBI_POSIX_API int mtx_init(mtx_t *m, int type)
{
	memset(m, 0, sizeof(*m));
	return c11_result(kb_mutex_init(mutex_of_pthread(pthread_of_mtx(m)),
		type & mtx_recursive ? KB_MUTEX_RECURSIVE : KB_MUTEX_NORMAL));
}

KBI_POSIX_API void mtx_destroy(mtx_t *m)
{
	pthread_mutex_destroy(pthread_of_mtx(m));
}

KBI_POSIX_API int mtx_lock(mtx_t *m)
{
	return c11_result(pthread_mutex_lock(pthread_of_mtx(m)));
}

KBI_POSIX_API int mtx_trylock(mtx_t *m)
{
	return c11_result(pthread_mutex_trylock(pthread_of_mtx(m)));
}

KBI_POSIX_API int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict abstime)
{
	return c11_result(pthread_mutex_timedlock(pthread_of_mtx(m), abstime));
}

KBI_POSIX_API int mtx_unlock(mtx_t *m)
{
	return c11_result(pthread_mutex_unlock(pthread_of_mtx(m)));
}
