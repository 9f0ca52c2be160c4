/* io/call.c - kb_io_* on what can be waited for: sockets, pipes, terminals; regular files go on to io/file.
 * Contract in kochab/io.h. Each call is made so that it cannot block (MSG_DONTWAIT), whatever mode the
 * descriptor is in; where the kernel knows no such form the call is made when poll says that it can be, by one thread
 * of this process at a time. Runs on the caller's stack. */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>

#include "core/handoff.h"
#include "io/async.h"
#include "io/engine.h"
#include "io/patience.h"
#include "io/ready.h"
#include "os/sys.h"

enum { ODD_LOCKS = 64 };

/* ---- calls that have a form that does not block ----------------------------------------------------- */

/* A system call with its arguments. */
struct call {
	long nr, a, b, c, d, e, f;
};

static long make(const struct call *c)
{
	long r;

	do
		r = kbi_sys6(c->nr, c->a, c->b, c->c, c->d, c->e, c->f);
	while (r == -EINTR);
	return r;
}

/* Makes the call until it does not say that it would block; its first result was r. */
static KBI_NOINLINE long insist_after(long r, const struct call *c, short events, uint64_t deadline)
{
	struct kbi_until until = kbi_patience(deadline);

	for (unsigned turn = 0; r == -EAGAIN || r == -EINTR; turn++) {
		int e = r == -EAGAIN ? kbi_ready_wait((int)c->a, events, until, turn) : 0;

		if (e && e != EINTR)
			return -e;
		r = make(c);
		if (r == -EAGAIN && turn > 0 && events == POLLIN && kbi_ready_is_shut((int)c->a))
			return 0;
	}
	return r;
}

/* The first try in line: it is most of the work. */
static inline long insist(const struct call *c, short events, uint64_t deadline)
{
	long r = kbi_sys6(c->nr, c->a, c->b, c->c, c->d, c->e, c->f);

	return kbi_likely(r != -EAGAIN && r != -EINTR) ? r : insist_after(r, c, events, deadline);
}

/* ---- sockets -------------------------------------------------------------------------------------------- */

ssize_t kb_io_recv(int fd, void *buf, size_t n, int flags, uint64_t deadline)
{
	struct call c = { SYS_recvfrom, fd, (long)buf, (long)n, flags | MSG_DONTWAIT, 0, 0 };

	return insist(&c, POLLIN, deadline);
}

ssize_t kb_io_send(int fd, const void *buf, size_t n, int flags, uint64_t deadline)
{
	struct call c = { SYS_sendto, fd, (long)buf, (long)n, flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0 };
	long r = insist(&c, POLLOUT, deadline);
	size_t done = r > 0 ? (size_t)r : 0;

	while (kbi_unlikely(r > 0 && done < n)) {
		c.b = (long)((const char *)buf + done);
		c.c = (long)(n - done);
		r = insist(&c, POLLOUT, deadline);
		done += r > 0 ? (size_t)r : 0;
	}
	return done > 0 ? (ssize_t)done : r;
}

ssize_t kb_io_recvmsg(int fd, struct msghdr *m, int flags, uint64_t deadline)
{
	struct call c = { SYS_recvmsg, fd, (long)m, flags | MSG_DONTWAIT, 0, 0, 0 };

	return insist(&c, POLLIN, deadline);
}

ssize_t kb_io_sendmsg(int fd, const struct msghdr *m, int flags, uint64_t deadline)
{
	struct call c = { SYS_sendmsg, fd, (long)m, flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0 };

	return insist(&c, POLLOUT, deadline);
}

/* ---- calls that have none ---------------------------------------------------------------------------------- */

static bool is_nonblocking(int fd)
{
	long flags = kbi_sys(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK);
}

static kb_mutex_t odd[ODD_LOCKS];

/* Another process may have come in between. */
static long make_lending(const struct call *c)
{
	long r;

	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	r = make(c);
	kbi_handoff_end();
	return r;
}

/* When poll says so; nobody of this process comes in between. */
static long when_ready(const struct call *c, short events, struct kbi_until until)
{
	struct pollfd p = { .fd = (int)c->a, .events = events };
	kb_mutex_t *m = &odd[(unsigned)c->a % ODD_LOCKS];
	long r = -EAGAIN;

	for (unsigned turn = 0; r == -EAGAIN; turn++) {
		struct timespec none = { 0, 0 };
		int e = 0;

		kb_mutex_lock(m);
		if (kbi_sys(SYS_ppoll, &p, 1, &none, NULL, 0) != 0)
			r = make_lending(c);
		kb_mutex_unlock(m);
		if (r == -EAGAIN)
			e = kbi_ready_wait((int)c->a, events, until, turn);
		if (e && e != EINTR)
			return -e;
	}
	return r;
}

int kb_io_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags, uint64_t deadline)
{
	struct call c = { SYS_accept4, fd, (long)address, (long)length, flags, 0, 0 };

	return (int)(is_nonblocking(fd) ? insist(&c, POLLIN, deadline) : when_ready(&c, POLLIN, kbi_patience(deadline)));
}

static int connect_nonblocking(const struct call *c, struct kbi_until until)
{
	socklen_t length = sizeof(int);
	int e = (int)-make(c), so = 0;

	/* a unix socket whose peer has too many to accept: nothing tells when it has not */
	for (uint64_t nap = 50000; e == EAGAIN; nap *= nap < 1000000 ? 2 : 1) {
		uint64_t now = kbi_timer_now();

		if (now >= until.deadline)
			return -ETIMEDOUT;
		now += nap;
		e = kbi_waitq_sleep(kbi_self(), (struct kbi_until){ now < until.deadline ? now : until.deadline, until.stop });
		if (e && e != ETIMEDOUT)
			return -e;
		e = (int)-make(c);
	}
	if (e != EINPROGRESS && e != EALREADY)
		return -e;
	e = kbi_ready_wait((int)c->a, POLLOUT, until, 1);
	if (e)
		return -e;
	e = (int)-kbi_sys(SYS_getsockopt, c->a, SOL_SOCKET, SO_ERROR, &so, &length);
	return e ? -e : -so;
}

int kb_io_connect(int fd, const struct sockaddr *address, socklen_t length, uint64_t deadline)
{
	struct call c = { SYS_connect, fd, (long)address, (long)length, 0, 0, 0 };
	struct kbi_until until = kbi_patience(deadline);
	struct kbi_async a = { .what = KBI_ASYNC_CONNECT, .fd = fd, .address = address, .offset = length };
	int e;

	if (is_nonblocking(fd))
		return connect_nonblocking(&c, until);
	e = (int)-kbi_async(&a, until);
	/* somebody has begun it before: a call that was interrupted, or whose kernel thread has ended */
	while (e == EALREADY) {
		e = kbi_ready_wait(fd, POLLOUT, until, 1);
		e = e ? e : (int)-make(&c);
	}
	return -e;
}

int kb_io_poll(struct pollfd *fds, nfds_t n, uint64_t deadline)
{
	struct kbi_until until = kbi_patience(deadline);

	for (unsigned turn = 0;; turn++) {
		struct timespec none = { 0, 0 };
		long r = kbi_sys(SYS_ppoll, fds, n, &none, NULL, 0);
		int e;

		if (r != 0)
			return (int)r;
		e = kbi_ready_wait_any(fds, n, until, turn);
		if (e == ETIMEDOUT)
			return (int)kbi_sys(SYS_ppoll, fds, n, &none, NULL, 0);
		if (e && e != EINTR)
			return -e;
	}
}

int kb_io_close(int fd)
{
	int e;

	if (kbi_engine_owns(fd))
		return -EBADF;
	kbi_async_new_number(fd);
	kbi_ready_closing(fd);
	e = (int)kbi_sys(SYS_close, fd);
	kbi_ready_closed(fd);
	return e == -EINTR ? 0 : e; /* it is closed, on Linux */
}
