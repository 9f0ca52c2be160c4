/* posix/again.c - system calls that the kernel never restarts after a handler. The runtime's own signals (the tick, a
 * cancellation that concerns another thread) end them with EINTR, too; unless a handler of the program has run on this
 * thread meanwhile the call is made again, for the time that is left. libc's originals do the work and are the
 * cancellation points. They block the virtual processor. Callers: programs. */
#include "posix/posix.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>

#include "core/preempt.h"
#include "os/sys.h"

/* The runtime's own signals must get through whatever the program blocks meanwhile. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!set)
		return NULL;
	*copy = *set;
	sigdelset(copy, KBI_TICK_SIGNAL);
	return copy;
}

/* For the calls that take a mask: it is returned also when the thread is cancelled inside. */
static void give_mask_back(void *b)
{
	kbi_signal_return_mask(b);
}

#define WITH_MASK(set_, call_) \
	do { \
		struct kbi_borrowed borrowed; \
		pthread_cleanup_push(give_mask_back, &borrowed); \
		if (kbi_signal_borrow_mask((set_), &borrowed)) { \
			errno = EINTR; \
			r = -1; \
		} else { \
			r = (call_); \
		} \
		pthread_cleanup_pop(1); \
	} while (0)

/* true: the call was ended by nobody the program knows. `before`: handlers that had run when it began. */
static bool for_nothing(long result, uint32_t before)
{
	return result < 0 && errno == EINTR && kbi_posix_light() && kbi_posix_me.handled == before;
}

static uint64_t ns_of(const struct timespec *t)
{
	return t->tv_sec > INT32_MAX ? KBI_FOREVER : (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static uint64_t deadline_of(uint64_t ns)
{
	return ns == KBI_FOREVER ? ns : kbi_timer_now() + ns;
}

static uint64_t left(uint64_t deadline)
{
	uint64_t now = kbi_timer_now();

	return now < deadline ? deadline - now : 0;
}

static int left_ms(uint64_t deadline)
{
	return deadline == KBI_FOREVER ? -1 : (int)((left(deadline) + 999999) / 1000000);
}

static struct timespec left_ts(uint64_t deadline)
{
	uint64_t ns = left(deadline);

	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

/* ---- timeouts in milliseconds ------------------------------------------------------------------------ */

static uint64_t deadline_of_ms(int ms)
{
	return ms < 0 ? KBI_FOREVER : deadline_of((uint64_t)ms * 1000000u);
}

KBI_POSIX_API int poll(struct pollfd *fds, nfds_t n, int ms)
{
	uint64_t deadline = ms > 0 ? deadline_of_ms(ms) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->poll(fds, n, ms);

	while (for_nothing(r, before))
		r = kbi_libc()->poll(fds, n, left_ms(deadline));
	return r;
}

KBI_POSIX_ALIAS(__poll, poll);

KBI_POSIX_API int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t bytes)
{
	return bytes / sizeof(*fds) < n ? kbi_libc()->__poll_chk(fds, n, ms, bytes) : poll(fds, n, ms);
}

KBI_POSIX_API int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	uint64_t deadline = ms > 0 ? deadline_of_ms(ms) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->epoll_wait(fd, events, n, ms);

	while (for_nothing(r, before))
		r = kbi_libc()->epoll_wait(fd, events, n, left_ms(deadline));
	return r;
}

KBI_POSIX_API int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
	uint64_t deadline = ms > 0 ? deadline_of_ms(ms) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	sigset_t copy;
	int r;

	mask = without_ours(mask, &copy);
	WITH_MASK(mask, kbi_libc()->epoll_pwait(fd, events, n, ms, mask));
	while (for_nothing(r, before))
		WITH_MASK(mask, kbi_libc()->epoll_pwait(fd, events, n, left_ms(deadline), mask));
	return r;
}

/* ---- others ------------------------------------------------------------------------------------------- */

static bool has_time(const struct timespec *t)
{
	return t && t->tv_sec >= 0 && kbi_posix_time_ok(t) && (t->tv_sec || t->tv_nsec);
}

KBI_POSIX_API int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
	uint64_t deadline = has_time(t) ? deadline_of(ns_of(t)) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	sigset_t copy;
	int r;

	mask = without_ours(mask, &copy);
	WITH_MASK(mask, kbi_libc()->ppoll(fds, n, t, mask));
	while (for_nothing(r, before)) {
		struct timespec rest = left_ts(deadline);

		WITH_MASK(mask, kbi_libc()->ppoll(fds, n, deadline == KBI_FOREVER ? NULL : &rest, mask));
	}
	return r;
}

KBI_POSIX_API int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask, size_t bytes)
{
	if (bytes / sizeof(*fds) < n)
		return kbi_libc()->__ppoll_chk(fds, n, t, mask, bytes);
	return ppoll(fds, n, t, mask);
}

/* Linux counts the time down in *t, which the calls that follow go on with. */
KBI_POSIX_API int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t)
{
	uint32_t before = kbi_posix_me.handled;
	int e = kbi_libc()->select(n, r, w, x, t);

	while (for_nothing(e, before))
		e = kbi_libc()->select(n, r, w, x, t);
	return e;
}

KBI_POSIX_ALIAS(__select, select);

KBI_POSIX_API int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict x,
			  const struct timespec *restrict t, const sigset_t *restrict mask)
{
	uint64_t deadline = has_time(t) ? deadline_of(ns_of(t)) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	sigset_t copy;
	int r;

	mask = without_ours(mask, &copy);
	WITH_MASK(mask, kbi_libc()->pselect(n, in, out, x, t, mask));
	while (for_nothing(r, before)) {
		struct timespec rest = left_ts(deadline);

		WITH_MASK(mask, kbi_libc()->pselect(n, in, out, x, deadline == KBI_FOREVER ? NULL : &rest, mask));
	}
	return r;
}

KBI_POSIX_API int semop(int id, struct sembuf *ops, size_t n)
{
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->semop(id, ops, n);

	while (for_nothing(r, before))
		r = kbi_libc()->semop(id, ops, n);
	return r;
}

KBI_POSIX_API int semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *t)
{
	uint64_t deadline = has_time(t) ? deadline_of(ns_of(t)) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->semtimedop(id, ops, n, t);

	while (for_nothing(r, before)) {
		struct timespec rest = left_ts(deadline);

		r = kbi_libc()->semtimedop(id, ops, n, deadline == KBI_FOREVER ? NULL : &rest);
	}
	return r;
}

KBI_POSIX_API int msgsnd(int id, const void *m, size_t size, int flags)
{
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->msgsnd(id, m, size, flags);

	while (for_nothing(r, before))
		r = kbi_libc()->msgsnd(id, m, size, flags);
	return r;
}

KBI_POSIX_API ssize_t msgrcv(int id, void *m, size_t size, long type, int flags)
{
	uint32_t before = kbi_posix_me.handled;
	ssize_t r = kbi_libc()->msgrcv(id, m, size, type, flags);

	while (for_nothing(r, before))
		r = kbi_libc()->msgrcv(id, m, size, type, flags);
	return r;
}
