/* posix/again.c - system calls that the kernel never restarts after a handler. The runtime's own signals (the tick, a
 * cancellation that concerns another thread) end them with EINTR, too; unless a handler of the program has run on this
 * thread meanwhile the call is made again, for the time that is left. libc's originals do the work and are the
 * cancellation points. They block the virtual processor; only waiting for files does not take the last one that is
 * left. Callers: programs. */
#include "posix/posix.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>

#include "core/preempt.h"
#include "core/vp.h"
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

/* ---- the last virtual processor ------------------------------------------------------------------------
 * A server's threads wait in poll or epoll_wait, more of them than virtual processors; when all of these are held so
 * the program stands still. So one is left: who would take it looks without waiting, and sleeps in between without a
 * virtual processor, first by yielding, then for 50 us, doubling up to 2 ms. */

static a32 held; /* virtual processors inside these calls; may say too many after a longjmp out of one */

/* true: the caller may wait in the kernel, and lets go afterwards. */
static bool hold(void)
{
	if (!kbi_posix_light() || a_add_rlx(&held, 1) + 1 < kbi_vp_n)
		return true;
	a_sub_rlx(&held, 1);
	return false;
}

static void let_go(void *unused)
{
	(void)unused;
	if (kbi_posix_light())
		a_sub_rlx(&held, 1);
}

#define HOLDING(call_) \
	do { \
		pthread_cleanup_push(let_go, NULL); \
		r = (call_); \
		pthread_cleanup_pop(1); \
	} while (0)

static void pause_between(struct kbi_task *self, unsigned n, uint64_t deadline)
{
	enum { YIELDS = 16, DOUBLINGS = 5, PAUSE_MIN_NS = 50000, PAUSE_MAX_NS = 2000000 };
	uint64_t ns = n - YIELDS <= DOUBLINGS ? (uint64_t)PAUSE_MIN_NS << (n - YIELDS) : PAUSE_MAX_NS, at;

	at = kbi_timer_now() + ns;
	if (n < YIELDS)
		kbi_thread_yield();
	else
		kbi_waitq_sleep(self, kbi_posix_until_cancelled(at < deadline ? at : deadline));
	kbi_signal_resumed();
}

/* look() does not wait; 0 from it is that nothing has come. */
static int wait_looking(int (*look)(void *), void *call, uint64_t deadline)
{
	uint32_t before = kbi_posix_me.handled;

	for (unsigned n = 0;; n += n < UINT32_MAX) {
		int r = look(call);

		if (r != 0 && !for_nothing(r, before))
			return r;
		if (kbi_timer_now() >= deadline)
			return 0;
		pause_between(kbi_self(), n, deadline);
		kbi_cancel_test();
		if (kbi_posix_me.handled != before) {
			errno = EINTR;
			return -1;
		}
	}
}

/* ---- timeouts in milliseconds ------------------------------------------------------------------------ */

static uint64_t deadline_of_ms(int ms)
{
	return ms < 0 ? KBI_FOREVER : deadline_of((uint64_t)ms * 1000000u);
}

struct polling {
	struct pollfd *fds;
	nfds_t n;
};

static int look_polling(void *c)
{
	const struct polling *p = c;

	return kbi_libc()->poll(p->fds, p->n, 0);
}

static int poll_holding(struct pollfd *fds, nfds_t n, int ms, uint64_t deadline)
{
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->poll(fds, n, ms);

	while (for_nothing(r, before))
		r = kbi_libc()->poll(fds, n, left_ms(deadline));
	return r;
}

static int poll_until(struct pollfd *fds, nfds_t n, uint64_t deadline)
{
	int r;

	if (!hold())
		return wait_looking(look_polling, &(struct polling){ fds, n }, deadline);
	HOLDING(poll_holding(fds, n, left_ms(deadline), deadline));
	return r;
}

KBI_POSIX_API int poll(struct pollfd *fds, nfds_t n, int ms)
{
	return ms ? poll_until(fds, n, deadline_of_ms(ms)) : kbi_libc()->poll(fds, n, ms);
}

KBI_POSIX_ALIAS(__poll, poll);

KBI_POSIX_API int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t bytes)
{
	return bytes / sizeof(*fds) < n ? kbi_libc()->__poll_chk(fds, n, ms, bytes) : poll(fds, n, ms);
}

struct epolling {
	int fd;
	int n;
	struct epoll_event *events;
};

static int look_epolling(void *c)
{
	const struct epolling *e = c;

	return kbi_libc()->epoll_wait(e->fd, e->events, e->n, 0);
}

static int epoll_holding(int fd, struct epoll_event *events, int n, int ms, uint64_t deadline)
{
	uint32_t before = kbi_posix_me.handled;
	int r = kbi_libc()->epoll_wait(fd, events, n, ms);

	while (for_nothing(r, before))
		r = kbi_libc()->epoll_wait(fd, events, n, left_ms(deadline));
	return r;
}

KBI_POSIX_API int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	uint64_t deadline = deadline_of_ms(ms);
	int r;

	if (!ms)
		return kbi_libc()->epoll_wait(fd, events, n, ms);
	if (!hold())
		return wait_looking(look_epolling, &(struct epolling){ fd, n, events }, deadline);
	HOLDING(epoll_holding(fd, events, n, ms, deadline));
	return r;
}

KBI_POSIX_API int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
	uint64_t deadline = ms > 0 ? deadline_of_ms(ms) : KBI_FOREVER;
	uint32_t before = kbi_posix_me.handled;
	sigset_t copy;
	int r;

	if (!mask)
		return epoll_wait(fd, events, n, ms);
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

	if (!mask && (!t || has_time(t)))
		return poll_until(fds, n, deadline);
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

struct selecting {
	int n;
	size_t bytes; /* of a set, which may be shorter than fd_set */
	fd_set *set[3], asked[3];
};

/* The sets are question and answer: each look asks again. */
static int look_selecting(void *c)
{
	struct selecting *s = c;
	struct timeval none = { 0, 0 };

	for (int i = 0; i < 3; i++)
		if (s->set[i])
			memcpy(s->set[i], &s->asked[i], s->bytes);
	return kbi_libc()->select(s->n, s->set[0], s->set[1], s->set[2], &none);
}

static int select_looking(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *t)
{
	struct selecting s = { n, (size_t)(n + 63) / 64 * 8, { r, w, x }, { { { 0 } } } };
	uint64_t deadline = KBI_FOREVER;
	int e;

	if (t)
		deadline = deadline_of((uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u);
	for (int i = 0; i < 3; i++)
		if (s.set[i])
			memcpy(&s.asked[i], s.set[i], s.bytes);
	e = wait_looking(look_selecting, &s, deadline);
	if (t) {
		struct timespec rest = left_ts(deadline);

		*t = (struct timeval){ rest.tv_sec, rest.tv_nsec / 1000 };
	}
	return e;
}

/* Linux counts the time down in *t, which the calls that follow go on with. */
static int select_holding(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *t)
{
	uint32_t before = kbi_posix_me.handled;
	int e = kbi_libc()->select(n, r, w, x, t);

	while (for_nothing(e, before))
		e = kbi_libc()->select(n, r, w, x, t);
	return e;
}

/* It may wait, and its arguments are such that we may look at them. */
static bool select_waits(int n, const struct timeval *t)
{
	return n >= 0 && n <= FD_SETSIZE &&
	       (!t || ((t->tv_sec || t->tv_usec) && t->tv_sec >= 0 && t->tv_sec < INT32_MAX && t->tv_usec >= 0 &&
		       t->tv_usec < 1000000));
}

KBI_POSIX_API int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict x,
			 struct timeval *restrict t)
{
	int r;

	if (!select_waits(n, t))
		return select_holding(n, in, out, x, t);
	if (!hold())
		return select_looking(n, in, out, x, t);
	HOLDING(select_holding(n, in, out, x, t));
	return r;
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
