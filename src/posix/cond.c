/* posix/cond.c - pthread_cond_* and cnd_*. A process-shared condition variable has libc's mark (bit
 * 0 of its flag word, behind the bytes that kb_cond_t uses) and is libc's; all further ones are
 * ours, with any mutex. The names have no version: they also serve GLIBC_2.2.5 callers, whose
 * condition variables have the size of ours.
 * Callers: programs. Waits may switch and are cancellation points; a cancelled thread holds the
 * mutex again when it unwinds. */
#include "posix/posix.h"

#include <string.h>

#include "sync/cond.h"

static inline kb_cond_t *cond_of_pthread(pthread_cond_t *c)
{
	return (kb_cond_t *)(void *)c;
}

static inline bool is_libcs_cond(const pthread_cond_t *c)
{
	return kbi_unlikely(kbi_cond_flags(c) & KBI_COND_SHARED);
}

static int init_shared(pthread_cond_t *c, const pthread_condattr_t *attr)
{
	return kbi_shared_is_known(KBI_SHARED_COND) ? kbi_libc()->pthread_cond_init(c, attr) :
						      kbi_shared_refuse(KBI_SHARED_COND);
}

KBI_POSIX_API int pthread_cond_init(pthread_cond_t *restrict c,
	const pthread_condattr_t *restrict attr)
{
	int shared = PTHREAD_PROCESS_PRIVATE;
	clockid_t clock = CLOCK_REALTIME;

	if (attr) {
		pthread_condattr_getpshared(attr, &shared);
		pthread_condattr_getclock(attr, &clock);
	}
	if (shared != PTHREAD_PROCESS_PRIVATE)
		return init_shared(c, attr);
	memset(c, 0, sizeof(*c));
	kb_cond_init(cond_of_pthread(c));
	cond_of_pthread(c)->clock = (uint32_t)clock;
	return 0;
}

KBI_POSIX_API int pthread_cond_destroy(pthread_cond_t *c)
{
	if (is_libcs_cond(c))
		return kbi_libc()->pthread_cond_destroy(c);
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_cond(cond_of_pthread(c));
	return kb_cond_destroy(cond_of_pthread(c));
}

KBI_POSIX_API int pthread_cond_signal(pthread_cond_t *c)
{
	if (is_libcs_cond(c))
		return kbi_libc()->pthread_cond_signal(c);
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_cond(cond_of_pthread(c));
	return kbi_cond_signal(cond_of_pthread(c));
}

KBI_POSIX_API int pthread_cond_broadcast(pthread_cond_t *c)
{
	if (is_libcs_cond(c))
		return kbi_libc()->pthread_cond_broadcast(c);
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_cond(cond_of_pthread(c));
	return kb_cond_broadcast(cond_of_pthread(c));
}

/* ---- waiting ------------------------------------------------------------------------------ */

static int unlock_libcs_mutex(void *m)
{
	return pthread_mutex_unlock(m);
}

/* Waits at our condition variable with libc's mutex. */
static int wait_with_libcs(kb_cond_t *c, pthread_mutex_t *m, struct kbi_until until)
{
	int e, locked;

	/* as libc's own wait does, so that the mutex cannot be destroyed meanwhile */
	m->__data.__nusers++;
	e = kbi_cond_wait_any(c, unlock_libcs_mutex, m, until);
	if (kbi_unlikely(e < 0)) { /* not the caller's mutex, or destroyed */
		m->__data.__nusers--;
		return -e;
	}
	locked = pthread_mutex_lock(m);
	if (locked == 0 || locked == EOWNERDEAD)
		m->__data.__nusers--;
	return locked ? locked : e;
}

/* A signal's handler runs while the thread keeps its place, before it locks the mutex, whose holder
 * may wait for the handler. */
static int stop_in_place(struct kbi_task *self)
{
	return kbi_unlikely(kbi_cancel_pending()) ? ECANCELED : kbi_posix_stop_in_place(self);
}

static inline int wait_with_ours(kb_cond_t *c, pthread_mutex_t *m, struct kbi_until until)
{
	kb_mutex_t *mutex = (kb_mutex_t *)(void *)m;

	return kbi_posix_calm() ? kbi_cond_wait_asked(c, mutex, until) : kbi_cond_wait(c, mutex, until);
}

/* Waits with a mutex that is not locked: libc's unlock of a normal mutex returns no error, and libc
 * locks it after the wait. */
static KBI_NOINLINE int wait_unlocked(kb_cond_t *c, pthread_mutex_t *m, struct kbi_until until)
{
	int e = EPERM;

	if ((m->__data.__kind & 3) == PTHREAD_MUTEX_RECURSIVE ||
		(m->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK)
		return EPERM;
	while (e == EPERM) {
		pthread_mutex_trylock(m);
		e = wait_with_ours(c, m, until);
	}
	return e;
}

/* Waits once; call after kbi_cancel_test. A wake-up by an asynchronous cancellation counts as
 * spurious, which POSIX permits. */
static inline int wait_our_cond(pthread_cond_t *c, pthread_mutex_t *m, uint64_t deadline)
{
	struct kbi_until until = { deadline, stop_in_place };
	int e;

	if (kbi_unlikely(kbi_posix_forked)) {
		kbi_orphan_cond(cond_of_pthread(c));
		if (!kbi_mutex_is_libcs(m))
			kbi_orphan_mutex((kb_mutex_t *)(void *)m);
	}
	if (kbi_mutex_is_libcs(m)) {
		e = wait_with_libcs(cond_of_pthread(c), m, until);
	} else {
		e = wait_with_ours(cond_of_pthread(c), m, until);
		if (kbi_unlikely(e == EPERM))
			e = wait_unlocked(cond_of_pthread(c), m, until);
	}
	kbi_signal_resumed();
	if (kbi_likely(e == 0))
		return 0;
	if (e == ECANCELED)
		kbi_cancel_test();
	return e == EINTR || e == ECANCELED ? 0 : e;
}

/* Waits in libc, in the kernel, with a mutex of libc. Lightweight threads that sleep for the mutex
 * are told, since libc does not tell them of its unlock. */
static int wait_in_libc(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	kbi_libc_mutex_tell(&m->__data.__lock, 1);
	return kbi_standin_libc_call_cond(c, m, clock, abstime);
}

/* Waits at libc's condition variable. If the mutex is ours, this thread unlocks and locks it, and
 * libc waits with another mutex. */
static int wait_libcs_cond(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	int e;

	if (!kbi_posix_light() && kbi_mutex_is_libcs(m))
		return wait_in_libc(c, m, clock, abstime);
	kbi_cancel_test();
	e = kbi_standin_libc_cond(c, m, clock, abstime);
	return e < 0 ? wait_in_libc(c, m, clock, abstime) : e;
}

static int wait_our_cond_until(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
	const struct timespec *abstime)
{
	kbi_cancel_test();
	return wait_our_cond(c, m, kbi_posix_deadline(clock, abstime));
}

KBI_POSIX_API int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m)
{
	if (is_libcs_cond(c))
		return wait_libcs_cond(c, m, -1, NULL);
	kbi_cancel_test();
	return wait_our_cond(c, m, KBI_FOREVER);
}

KBI_POSIX_API int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
					 const struct timespec *restrict abstime)
{
	if (!kbi_posix_time_ok(abstime))
		return EINVAL;
	if (is_libcs_cond(c))
		return wait_libcs_cond(c, m, -1, abstime);
	return wait_our_cond_until(c, m, (clockid_t)cond_of_pthread(c)->clock, abstime);
}

KBI_POSIX_API int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
	clockid_t clock, const struct timespec *restrict abstime)
{
	if (!kbi_posix_time_ok(abstime) || !kbi_posix_clock_ok(clock))
		return EINVAL;
	if (is_libcs_cond(c))
		return wait_libcs_cond(c, m, clock, abstime);
	return wait_our_cond_until(c, m, clock, abstime);
}

/* ---- C11 ---------------------------------------------------------------------------------- */

static inline pthread_cond_t *pthread_of_cnd(cnd_t *c)
{
	return (pthread_cond_t *)(void *)c;
}

static int c11_result(int e)
{
	return e == 0 ? thrd_success : e == ETIMEDOUT ? thrd_timedout : thrd_error;
}

KBI_POSIX_API int cnd_init(cnd_t *c)
{
	return c11_result(pthread_cond_init(pthread_of_cnd(c), NULL));
}

KBI_POSIX_API void cnd_destroy(cnd_t *c)
{
	pthread_cond_destroy(pthread_of_cnd(c));
}

KBI_POSIX_API int cnd_signal(cnd_t *c)
{
	return c11_result(pthread_cond_signal(pthread_of_cnd(c)));
}

KBI_POSIX_API int cnd_broadcast(cnd_t *c)
{
	return c11_result(pthread_cond_broadcast(pthread_of_cnd(c)));
}

KBI_POSIX_API int cnd_wait(cnd_t *c, mtx_t *m)
{
	return c11_result(pthread_cond_wait(pthread_of_cnd(c), (pthread_mutex_t *)(void *)m));
}

KBI_POSIX_API int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m,
	const struct timespec *restrict abstime)
{
	return c11_result(pthread_cond_timedwait(pthread_of_cnd(c), (pthread_mutex_t *)(void *)m,
		abstime));
}
