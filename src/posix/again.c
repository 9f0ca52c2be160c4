/* posix/again.c - calls that block the virtual processor in the kernel and that the kernel does not restart after a
 * handler: the runtime's tick, which comes when work waits behind the caller, is none of the program's signals, so
 * the call goes on with the time that is left. Should a signal of the program's arrive with a tick between two
 * instructions of the kernel, its handler runs and the call goes on, too.
 * Callers: programs. Calls libc's originals. Never switches. */
#include "posix/posix.h"

#include <limits.h>

#include "core/preempt.h"
#include "core/vp.h"
#include "os/sys.h"

/* ---- the tick ------------------------------------------------------------------------------------------ */

/* How many this virtual processor has had; the caller stays on it while it blocks. */
static uint64_t ticks(void)
{
	struct kbi_task *self = kbi_posix_light();

	return self ? self->vp->n_ticks : 0;
}

static bool only_tick(long result, uint64_t *seen)
{
	uint64_t now;

	if (kbi_likely(result != -1 || errno != EINTR))
		return false;
	if (kbi_posix_light() && kbi_posix_stop_signal(kbi_self())) {
		kbi_signal_resumed(); /* the tick came for the sake of a signal sent to this thread */
		return false;
	}
	now = ticks();
	if (now == *seen)
		return false;
	*seen = now;
	return true;
}

/* The tick must get through whatever the program blocks meanwhile. */
static const sigset_t *without_tick(const sigset_t *set, sigset_t *copy)
{
	if (!set)
		return NULL;
	*copy = *set;
	sigdelset(copy, KBI_TICK_SIGNAL);
	return copy;
}

/* ---- time that is left ------------------------------------------------------------------------------------ */

static uint64_t end_of_ms(int ms)
{
	return ms > 0 ? kbi_sys_now() + (uint64_t)ms * 1000000 : 0;
}

static int ms_left(int ms, uint64_t end)
{
	uint64_t now;

	if (ms <= 0)
		return ms;
	now = kbi_sys_now();
	return now >= end ? 0 : (int)((end - now + 999999) / 1000000);
}

/* UINT64_MAX: for ever, or an invalid time, which the kernel refuses before it blocks. */
static uint64_t end_of(const struct timespec *t)
{
	if (!t || !kbi_posix_time_ok(t) || t->tv_sec < 0 || t->tv_sec >= INT_MAX)
		return UINT64_MAX;
	return kbi_sys_now() + (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static const struct timespec *left(const struct timespec *t, uint64_t end, struct timespec *space)
{
	uint64_t now = kbi_sys_now(), ns = now < end ? end - now : 0;

	if (end == UINT64_MAX)
		return t;
	*space = (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	return space;
}

/* ---- files ----------------------------------------------------------------------------------------------- */

KBI_POSIX_API int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	uint64_t seen = ticks(), end = end_of_ms(timeout);
	int ms = timeout, r;

	while (only_tick(r = kbi_libc()->poll(fds, n, ms), &seen))
		ms = ms_left(timeout, end);
	return r;
}

KBI_POSIX_API int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t bytes)
{
	if (bytes / sizeof(*fds) < n)
		return kbi_libc()->__poll_chk(fds, n, timeout, bytes);
	return poll(fds, n, timeout);
}

KBI_POSIX_API int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t seen = ticks(), end = end_of(timeout);
	const struct timespec *t = timeout;
	struct timespec space;
	sigset_t copy;
	int r;

	mask = without_tick(mask, &copy);
	while (only_tick(r = kbi_libc()->ppoll(fds, n, t, mask), &seen))
		t = left(timeout, end, &space);
	return r;
}

KBI_POSIX_API int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
			      size_t bytes)
{
	if (bytes / sizeof(*fds) < n)
		return kbi_libc()->__ppoll_chk(fds, n, timeout, mask, bytes);
	return ppoll(fds, n, timeout, mask);
}

/* Linux keeps the time that is left in *timeout, and the sets as they were if it fails. */
KBI_POSIX_API int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
			 struct timeval *restrict timeout)
{
	uint64_t seen = ticks();
	int r;

	do
		r = kbi_libc()->select(n, in, out, except, timeout);
	while (only_tick(r, &seen));
	return r;
}

KBI_POSIX_API int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
			  const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
	uint64_t seen = ticks(), end = end_of(timeout);
	const struct timespec *t = timeout;
	struct timespec space;
	sigset_t copy;
	int r;

	mask = without_tick(mask, &copy);
	while (only_tick(r = kbi_libc()->pselect(n, in, out, except, t, mask), &seen))
		t = left(timeout, end, &space);
	return r;
}

KBI_POSIX_API int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
	uint64_t seen = ticks(), end = end_of_ms(timeout);
	int ms = timeout, r;

	while (only_tick(r = kbi_libc()->epoll_wait(fd, events, n, ms), &seen))
		ms = ms_left(timeout, end);
	return r;
}

KBI_POSIX_API int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout, const sigset_t *mask)
{
	uint64_t seen = ticks(), end = end_of_ms(timeout);
	int ms = timeout, r;
	sigset_t copy;

	mask = without_tick(mask, &copy);
	while (only_tick(r = kbi_libc()->epoll_pwait(fd, events, n, ms, mask), &seen))
		ms = ms_left(timeout, end);
	return r;
}

/* ---- System V ----------------------------------------------------------------------------------------------- */

KBI_POSIX_API int semop(int id, struct sembuf *ops, size_t n)
{
	uint64_t seen = ticks();
	int r;

	do
		r = kbi_libc()->semop(id, ops, n);
	while (only_tick(r, &seen));
	return r;
}

KBI_POSIX_API int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *timeout)
{
	uint64_t seen = ticks(), end = end_of(timeout);
	const struct timespec *t = timeout;
	struct timespec space;
	int r;

	while (only_tick(r = kbi_libc()->semtimedop(id, ops, n, t), &seen))
		t = left(timeout, end, &space);
	return r;
}

KBI_POSIX_API int msgsnd(int id, const void *message, size_t bytes, int flags)
{
	uint64_t seen = ticks();
	int r;

	do
		r = kbi_libc()->msgsnd(id, message, bytes, flags);
	while (only_tick(r, &seen));
	return r;
}

KBI_POSIX_API ssize_t msgrcv(int id, void *message, size_t bytes, long type, int flags)
{
	uint64_t seen = ticks();
	ssize_t r;

	do
		r = kbi_libc()->msgrcv(id, message, bytes, type, flags);
	while (only_tick(r, &seen));
	return r;
}
