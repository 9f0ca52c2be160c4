/* posix/sem.c - sem_*. Named and process-shared semaphores have libc's mark (the word after the
 * value) and are libc's; all further ones are ours. Callers: programs; sem_post also signal
 * handlers. Waits may switch and are cancellation points. A lightweight thread waits for a
 * semaphore of libc by trying (posix/libc_mutex), then in libc, on its kernel thread or a stand-in
 * (posix/standin_libc). */
#include "posix/posix.h"

#include <string.h>

#include "sync/sem.h"

/* libc's struct new_sem: value and waiters in 8 bytes, then `private`: 0, or the kernel's flag for
 * shared. */
_Static_assert(sizeof(kb_sem_t) <= sizeof(sem_t), "it lies in libc's bytes");
_Static_assert(_Alignof(kb_sem_t) <= _Alignof(sem_t), "it lies in libc's bytes");
_Static_assert(offsetof(kb_sem_t, shared) == KBI_SHARED_SEM_AT, "libc's mark");

static inline kb_sem_t *sem_of_posix(sem_t *s)
{
	return (kb_sem_t *)(void *)s;
}

/* Returns the half with libc's value, which changes with each post. */
static inline const void *value_word_of_sem(const sem_t *s)
{
	return (const uint32_t *)(const void *)s + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Posts libc's semaphore and wakes a waiter here. Not in a handler, whose kernel thread may be
 * inside a wake-up: then waiters look again soon. The semaphore may be gone after the post: only
 * its address is used. */
static int post_libcs_sem(sem_t *s)
{
	const void *value = value_word_of_sem(s);
	const struct kbi_task *self;
	int e = kbi_libc()->sem_post(s);

	if (e == 0 && (self = kbi_self_raw()) && self->vp && a_load_rlx(&self->np) == 0)
		kbi_libc_mutex_tell(value, 1);
	return e;
}

/* Returns our semaphore; in the child of fork it forgets the parent's waiters first. */
static inline kb_sem_t *live_sem(sem_t *s)
{
	if (kbi_unlikely(kbi_posix_forked))
		kbi_orphan_sem(sem_of_posix(s));
	return sem_of_posix(s);
}

static inline bool is_libcs_sem(sem_t *s)
{
	return kbi_unlikely(sem_of_posix(s)->shared != 0);
}

static int sem_call_result(int e)
{
	if (kbi_likely(e == 0))
		return 0;
	errno = e;
	return -1;
}

KBI_POSIX_API int sem_init(sem_t *s, int shared, unsigned value)
{
	if (shared)
		return kbi_shared_is_known(KBI_SHARED_SEM) ? kbi_libc()->sem_init(s, shared, value) :
			sem_call_result(kbi_shared_refuse(KBI_SHARED_SEM));
	if (value > KB_SEM_VALUE_MAX)
		return sem_call_result(EINVAL);
	memset(s, 0, sizeof(*s));
	return sem_call_result(kb_sem_init(sem_of_posix(s), value));
}

KBI_POSIX_API int sem_destroy(sem_t *s)
{
	if (is_libcs_sem(s))
		return kbi_libc()->sem_destroy(s);
	return sem_call_result(kb_sem_destroy(live_sem(s)));
}

KBI_POSIX_API int sem_post(sem_t *s)
{
	if (is_libcs_sem(s))
		return post_libcs_sem(s);
	return sem_call_result(kbi_sem_post(live_sem(s)));
}

KBI_POSIX_API int sem_getvalue(sem_t *restrict s, int *restrict value)
{
	if (is_libcs_sem(s))
		return kbi_libc()->sem_getvalue(s, value);
	*value = (int)kb_sem_value(sem_of_posix(s));
	return 0;
}

KBI_POSIX_API int sem_trywait(sem_t *s)
{
	if (is_libcs_sem(s))
		return kbi_libc()->sem_trywait(s);
	return sem_call_result(kb_sem_trywait(sem_of_posix(s)));
}

/* ---- waiting ------------------------------------------------------------------------------ */

static int try_libcs_sem(void *s)
{
	if (kbi_libc()->sem_trywait(s) == 0)
		return 0;
	return errno == EAGAIN ? EBUSY : errno;
}

static int wait_libcs_sem(sem_t *s, clockid_t clock, const struct timespec *abstime)
{
	return kbi_libc_mutex_wait_ending(try_libcs_sem, kbi_standin_libc_sem, s, value_word_of_sem(s),
		clock, abstime);
}

/* Goes on after a wait that ended with e. A handler with SA_RESTART does not end the call, unless
 * the call has a time limit: then the kernel does not restart libc's wait, either. */
static KBI_NOINLINE int resume_sem_wait(kb_sem_t *s, uint64_t deadline, uint32_t handled, int e)
{
	for (;;) {
		bool interrupted = kbi_signal_resumed();

		if (e == ECANCELED)
			kbi_cancel_test();
		else if (e != EINTR || interrupted || !kbi_posix_light() ||
			 (deadline != KBI_FOREVER && kbi_posix_me.handled != handled))
			return e;
		e = kbi_sem_wait(s, kbi_posix_until_cancelled(deadline));
	}
}

/* Waits; call after kbi_cancel_test. */
static inline int wait_our_sem(kb_sem_t *s, uint64_t deadline)
{
	struct kbi_until until = kbi_posix_until_cancelled(deadline);
	uint32_t handled = kbi_posix_me.handled;
	int e = kbi_posix_calm() ? kbi_sem_wait_asked(s, until) : kbi_sem_wait(s, until);

	if (kbi_unlikely(e))
		return resume_sem_wait(s, deadline, handled, e);
	kbi_signal_resumed();
	return 0;
}

KBI_POSIX_API int sem_wait(sem_t *s)
{
	kbi_cancel_test();
	if (!is_libcs_sem(s))
		return sem_call_result(wait_our_sem(live_sem(s), KBI_FOREVER));
	if (!kbi_posix_light())
		return kbi_libc()->sem_wait(s);
	return sem_call_result(wait_libcs_sem(s, CLOCK_REALTIME, NULL));
}

static int wait_sem_until(sem_t *s, clockid_t clock, const struct timespec *abstime)
{
	int e;

	kbi_cancel_test();
	if (!kbi_posix_clock_ok(clock) || !kbi_posix_time_ok(abstime))
		return EINVAL;
	if (is_libcs_sem(s))
		return wait_libcs_sem(s, clock, abstime);
	e = kb_sem_trywait(live_sem(s));
	if (e == 0)
		return 0;
	return wait_our_sem(sem_of_posix(s), kbi_posix_deadline(clock, abstime));
}

KBI_POSIX_API int sem_timedwait(sem_t *restrict s, const struct timespec *restrict abstime)
{
	if (is_libcs_sem(s) && !kbi_posix_light())
		return kbi_libc()->sem_timedwait(s, abstime);
	return sem_call_result(wait_sem_until(s, CLOCK_REALTIME, abstime));
}

KBI_POSIX_API int sem_clockwait(sem_t *restrict s, clockid_t clock,
	const struct timespec *restrict abstime)
{
	if (is_libcs_sem(s) && !kbi_posix_light())
		return kbi_libc()->sem_clockwait(s, clock, abstime);
	return sem_call_result(wait_sem_until(s, clock, abstime));
}
