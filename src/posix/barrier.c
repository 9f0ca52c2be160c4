/* posix/barrier.c - pthread_barrier_*. Process-shared barriers have libc's mark, at a place that
 * our barriers leave zero, and are libc's; there a lightweight thread waits aside, or a stand-in
 * waits for it (posix/standin_libc). Callers: programs. Waits may switch. */
#include "posix/posix.h"

#include "sync/barrier.h"

#include <limits.h>
#include <string.h>

/* libc's struct pthread_barrier: in, round, count, shared, out. */
_Static_assert(sizeof(kb_barrier_t) <= sizeof(pthread_barrier_t), "it lies in libc's bytes");
_Static_assert(_Alignof(kb_barrier_t) <= _Alignof(pthread_barrier_t), "it lies in libc's bytes");
_Static_assert(offsetof(kb_barrier_t, shared) == KBI_SHARED_BARRIER_AT, "libc's mark");

static inline kb_barrier_t *barrier_of_pthread(pthread_barrier_t *b)
{
	return (kb_barrier_t *)(void *)b;
}

/* Returns our barrier; in the child of fork it forgets the parent's waiters first. */
static inline kb_barrier_t *live_barrier(pthread_barrier_t *b)
{
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_barrier(barrier_of_pthread(b));
	return barrier_of_pthread(b);
}

static inline bool is_libcs_barrier(pthread_barrier_t *b)
{
	return kbi_unlikely(barrier_of_pthread(b)->shared != 0);
}

KBI_POSIX_API int pthread_barrier_init(pthread_barrier_t *restrict b,
	const pthread_barrierattr_t *restrict attr, unsigned count)
{
	int shared = PTHREAD_PROCESS_PRIVATE;

	if (attr)
		pthread_barrierattr_getpshared(attr, &shared);
	if (shared != PTHREAD_PROCESS_PRIVATE)
		return kbi_shared_is_known(KBI_SHARED_BARRIER)
			? kbi_libc()->pthread_barrier_init(b, attr, count)
			: kbi_shared_refuse(KBI_SHARED_BARRIER);
	if (count == 0 || count > INT_MAX)
		return EINVAL;
	memset(b, 0, sizeof(*b));
	return kb_barrier_init(barrier_of_pthread(b), count);
}

KBI_POSIX_API int pthread_barrier_destroy(pthread_barrier_t *b)
{
	if (is_libcs_barrier(b))
		return kbi_libc()->pthread_barrier_destroy(b);
	return kb_barrier_destroy(live_barrier(b));
}

KBI_POSIX_API int pthread_barrier_wait(pthread_barrier_t *b)
{
	int e;

	_Static_assert(KB_BARRIER_SERIAL == PTHREAD_BARRIER_SERIAL_THREAD, "the same answer");
	if (is_libcs_barrier(b))
		return kbi_posix_light() ? kbi_standin_libc_barrier(b) :
			kbi_libc()->pthread_barrier_wait(b);
	/* not initialised: no thread would ever be the last */
	if (kbi_unlikely(barrier_of_pthread(b)->need == 0))
		return EINVAL;
	/* EINTR: an asynchronous cancellation, or a handler ran on a kernel thread */
	do {
		e = kbi_barrier_wait(live_barrier(b), kbi_posix_until_granted(KBI_FOREVER));
		kbi_signal_resumed();
	} while (e == EINTR);
	return e;
}
