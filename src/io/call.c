/* io/call.c - kb_io_* for files that can be waited for: sockets, pipes, terminals; regular files go
 * on to io/file. Contract in kochab/io.h.
 * Callers: programs. Runs on the caller's stack; may switch.
 *
 * Each call is made so that it cannot block (MSG_DONTWAIT), in whatever mode the descriptor is.
 * Where the kernel has no such form, the call is made when poll says that it can be, by a single
 * thread of this process at a time. */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <string.h>

#include "core/handoff.h"
#include "core/slice.h"
#include "io/async.h"
#include "io/engine.h"
#include "io/patience.h"
#include "io/ready.h"
#include "io/talk.h"
#include "os/sys.h"
#include "sync/mutex.h"

enum { ODD_LOCKS = 64 };

/* ---- calls that have a form that does not block ---------------------------------------------- */

/* A system call with its arguments. */
struct call {
	long nr, a, b, c, d, e, f;
};

static long make_system_call(const struct call *c)
{
	long r;

	do
		r = kbi_sys6(c->nr, c->a, c->b, c->c, c->d, c->e, c->f);
	while (r == -EINTR);
	return r;
}

/* Makes an attempt, about the held file. */
static inline long attempt_held_call(struct call *c, const struct kbi_hold *h, short events,
	unsigned turn)
{
	long r;

	kbi_hold_attempt();
	c->a = kbi_hold_fd(h);
	r = c->a < 0 ? -EBADF : make_system_call(c);
	if (r == -EAGAIN && turn > 0 && events == POLLIN && kbi_ready_is_shut((int)c->a))
		r = 0;
	kbi_hold_attempted();
	return r;
}

/* Makes the call until it does not report that it would block. r was its
 * last result, in that turn. */
static inline long insist_holding(long r, struct call *c, struct kbi_hold *h, short events,
	struct kbi_until until, unsigned turn)
{
	for (; r == -EAGAIN || r == -EINTR; turn++) {
		int e = r == -EAGAIN ? kbi_ready_wait(h, events, until, turn) : 0;

		if (e && e != EINTR)
			return -e;
		r = attempt_held_call(c, h, events, turn);
	}
	return r;
}

static KBI_NOINLINE long insist_after(long r, struct call *c, short events, uint64_t deadline)
{
	struct kbi_hold h;
	int e = kbi_hold_begin(&h, (int)c->a, false, NULL);

	if (e)
		return -e;
	r = insist_holding(r, c, &h, events, kbi_patience(deadline), 0);
	kbi_hold_end(&h);
	return r;
}

/* Makes the call. The first try is in line: it is most of the work. */
static inline long insist_on_call(struct call *c, short events, uint64_t deadline)
{
	long r = kbi_sys6(c->nr, c->a, c->b, c->c, c->d, c->e, c->f);

	return kbi_likely(r != -EAGAIN && r != -EINTR) ? r : insist_after(r, c, events, deadline);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static inline uint32_t talk_key(void)
{
	return (uint32_t)((uintptr_t)kbi_self_raw() / 16);
}

/* Receives after a first look. tried: the caller has tried in vain. */
static KBI_NOINLINE long receive_later(struct kbi_slot *s, struct call *c, uint64_t deadline,
	bool tried)
{
	uint32_t ticks = kbi_talk_ticks();
	struct kbi_hold h;
	long r = -EAGAIN;
	int e;

	e = kbi_hold_begin(&h, (int)c->a, false, NULL);
	if (e)
		return -e;
	kbi_slice_note(kbi_self());
	if (kbi_talk_begin(&h) || !tried)
		r = attempt_held_call(c, &h, POLLIN, 0);
	if (kbi_likely(r > 0)) {
		kbi_talk_spared(&h);
	} else if (r == -EAGAIN || r == -EINTR) {
		tried = true;
		r = insist_holding(r, c, &h, POLLIN, kbi_patience(deadline), 1);
	}
	if (s && tried)
		kbi_talk_goes_on(&s->talk, talk_key());
	else if (s && kbi_unlikely(kbi_talk_ticks() != ticks))
		kbi_talk_is_over(&s->talk, talk_key());
	kbi_hold_end(&h);
	return r;
}

static inline long receive_from_socket(struct call *c, uint64_t deadline)
{
	struct kbi_slot *s = kbi_slot_find((int)c->a);
	bool tries = !s || !deadline || !kbi_talk_is_on(&s->talk, talk_key());
	long r = tries ? kbi_sys6(c->nr, c->a, c->b, c->c, c->d, c->e, c->f) : -EAGAIN;

	if (kbi_likely(r != -EAGAIN && r != -EINTR)) {
		if (s)
			kbi_talk_is_over(&s->talk, talk_key());
		kbi_slice_call(KBI_SLICE_NATIVE);
		return r;
	}
	return receive_later(s, c, deadline, tries);
}

ssize_t kb_io_recv(int fd, void *buf, size_t n, int flags, uint64_t deadline)
{
	struct call c = { SYS_recvfrom, fd, (long)buf, (long)n, flags | MSG_DONTWAIT, 0, 0 };

	return receive_from_socket(&c, deadline);
}

/* Sends until all is sent, to the same file, after a first part of r bytes, or none. */
static KBI_NOINLINE long send_rest(long r, struct call *c, uint64_t since, struct kbi_until until)
{
	const char *p = (const char *)c->b;
	size_t n = (size_t)c->c, done = r > 0 ? (size_t)r : 0;
	struct kbi_hold h;
	int e = kbi_hold_begin(&h, (int)c->a, false, done ? &since : NULL);

	if (e)
		return done ? (long)done : -e;
	do {
		c->b = (long)(p + done);
		c->c = (long)(n - done);
		r = insist_holding(done ? attempt_held_call(c, &h, POLLOUT, 0) : r, c, &h, POLLOUT,
			until, 0);
		done += r > 0 ? (size_t)r : 0;
	} while (r > 0 && done < n);
	kbi_hold_end(&h);
	return done ? (long)done : r;
}

ssize_t kb_io_send(int fd, const void *buf, size_t n, int flags, uint64_t deadline)
{
	struct call c =
		{ SYS_sendto, fd, (long)buf, (long)n, flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0 };
	uint64_t since = kbi_hold_now();
	long r = kbi_sys(SYS_sendto, fd, buf, n, c.d, NULL, 0);

	if (kbi_likely(r == (long)n || (r < 0 && r != -EAGAIN && r != -EINTR))) {
		kbi_slice_given();
		return r;
	}
	return send_rest(r, &c, since, kbi_patience(deadline));
}

ssize_t kb_io_recvmsg(int fd, struct msghdr *m, int flags, uint64_t deadline)
{
	struct call c = { SYS_recvmsg, fd, (long)m, flags | MSG_DONTWAIT, 0, 0, 0 };

	return receive_from_socket(&c, deadline);
}

ssize_t kb_io_sendmsg(int fd, const struct msghdr *m, int flags, uint64_t deadline)
{
	struct call c = { SYS_sendmsg, fd, (long)m, flags | MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0 };

	return insist_on_call(&c, POLLOUT, deadline);
}

/* ---- calls that have none -------------------------------------------------------------------- */

static bool is_nonblocking(int fd)
{
	long flags = kbi_sys(SYS_fcntl, fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK);
}

static kb_mutex_t odd[ODD_LOCKS];

/* Makes the call with the VP lent: another process may have taken the event in between. */
static long make_lending(const struct call *c)
{
	long r;

	kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	r = make_system_call(c);
	kbi_handoff_end();
	return r;
}

/* Makes the call when poll says so; no other thread of this process comes in between. The call may
 * block all the same, so it goes on with a copy of its own, if there is a number for it. */
static long call_when_ready(const struct call *first, short events, struct kbi_until until)
{
	struct call c = *first;
	struct pollfd p = { .events = events };
	kb_mutex_t *m = &odd[(unsigned)c.a % ODD_LOCKS];
	struct kbi_hold h;
	long r = -EAGAIN;
	int e = kbi_hold_begin(&h, (int)c.a, false, NULL), own;

	for (unsigned turn = 0; r == -EAGAIN && !e; turn++) {
		kbi_mutex_lock(m, kbi_waitq_until(KBI_FOREVER));
		kbi_hold_attempt();
		p.fd = kbi_hold_fd(&h);
		own = p.fd >= 0 && kbi_sys_poll_now(&p, 1) > 0 ? kbi_own_copy(p.fd) : -1;
		kbi_hold_attempted();
		if (own >= 0) {
			c.a = own;
			r = make_lending(&c);
			kbi_own_drop(own);
		}
		kb_mutex_unlock(m);
		if (r == -EAGAIN)
			e = own < 0 && turn > 0 && p.revents ? EMFILE : kbi_ready_wait(&h, events, until, turn);
		if (e == EINTR)
			e = 0;
	}
	kbi_hold_end(&h);
	return e ? -e : r;
}

int kb_io_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags, uint64_t deadline)
{
	struct call c = { SYS_accept4, fd, (long)address, (long)length, flags, 0, 0 };

	return (int)(is_nonblocking(fd) ? insist_on_call(&c, POLLIN, deadline) :
		call_when_ready(&c, POLLIN, kbi_patience(deadline)));
}

/* Connects; c is about a copy of the caller's. */
static int connect_nonblocking(const struct call *c, struct kbi_until until)
{
	struct kbi_hold h;
	socklen_t length = sizeof(int);
	int e = (int)-make_system_call(c), so = 0;

	/* a unix socket whose peer has too many connections to accept:
	 * nothing reports when that ends */
	for (uint64_t nap = 50000; e == EAGAIN; nap *= nap < 1000000 ? 2 : 1) {
		uint64_t now = kbi_timer_now();

		if (now >= until.deadline)
			return -ETIMEDOUT;
		now += nap;
		e = kbi_waitq_sleep(kbi_self(),
			(struct kbi_until){ now < until.deadline ? now : until.deadline, until.stop });
		if (e && e != ETIMEDOUT)
			return -e;
		e = (int)-make_system_call(c);
	}
	if (e != EINPROGRESS && e != EALREADY)
		return -e;
	e = kbi_hold_begin(&h, (int)c->a, true, NULL);
	e = e ? e : kbi_ready_wait(&h, POLLOUT, until, 1);
	kbi_hold_end(&h);
	if (e)
		return -e;
	e = (int)-kbi_sys(SYS_getsockopt, c->a, SOL_SOCKET, SO_ERROR, &so, &length);
	return e ? -e : -so;
}

static int connect_waiting(const struct call *c, struct kbi_until until)
{
	struct kbi_async a =
		{ .what = KBI_ASYNC_CONNECT, .fd = (int)c->a, .address = (const void *)c->b,
			       .offset = (uint64_t)c->c };
	int e = (int)-kbi_async(&a, until);
	struct kbi_hold h;

	/* the connect was begun before: by a call that was interrupted, or
	 * whose kernel thread has ended */
	while (e == EALREADY) {
		e = kbi_hold_begin(&h, (int)c->a, true, NULL);
		e = e ? e : kbi_ready_wait(&h, POLLOUT, until, 1);
		kbi_hold_end(&h);
		e = e ? e : (int)-make_system_call(c);
	}
	return -e;
}

int kb_io_connect(int fd, const struct sockaddr *address, socklen_t length, uint64_t deadline)
{
	int own = kbi_own_copy(fd), r;
	struct call c = { SYS_connect, own, (long)address, (long)length, 0, 0, 0 };

	if (own < 0)
		return own;
	r = is_nonblocking(own) ? connect_nonblocking(&c, kbi_patience(deadline)) :
				  connect_waiting(&c, kbi_patience(deadline));
	kbi_own_drop(own);
	return r;
}

static int poll_holding(struct kbi_hold *h, struct pollfd *copy, struct pollfd *fds, nfds_t n,
	struct kbi_until until)
{
	for (unsigned turn = 0;; turn++) {
		int e = kbi_ready_wait_any(h, fds, n, until, turn);
		long r;

		if (e && e != EINTR && e != ETIMEDOUT)
			return -e;
		kbi_hold_attempt();
		r = kbi_hold_poll(h, fds, n, copy);
		kbi_hold_attempted();
		if (r != 0 || e == ETIMEDOUT)
			return (int)r;
	}
}

static KBI_NOINLINE int poll_later(struct pollfd *fds, nfds_t n, struct kbi_until until)
{
	enum { FEW = 16 };
	struct kbi_hold few[FEW], *h = few;
	const size_t bytes = n * (sizeof *few + sizeof *fds);
	struct pollfd copy[FEW];
	int r;

	if (n > FEW)
		h = kbi_sys_map(bytes);
	else
		memset(few, 0, sizeof few);
	if (!h)
		return -ENOMEM;
	kbi_hold_begin_all(h, fds, n);
	r = poll_holding(h, h == few ? copy : (struct pollfd *)(void *)(h + n), fds, n, until);
	kbi_hold_end_all(h, n);
	if (h != few)
		kbi_sys_unmap(h, bytes);
	return r;
}

int kb_io_poll(struct pollfd *fds, nfds_t n, uint64_t deadline)
{
	long r = kbi_sys_poll_now(fds, n);

	return r ? (int)r : poll_later(fds, n, kbi_patience(deadline));
}

int kb_io_close(int fd)
{
	static struct kbi_handoff_habit habit;
	int e;

	if (kbi_own_is(fd))
		return -EBADF;
	kbi_async_new_number(fd);
	kbi_ready_closing(fd);
	kbi_handoff_begin_as(&habit); /* the blocks of a deleted file are freed */
	e = (int)kbi_sys(SYS_close, fd);
	kbi_handoff_end();
	kbi_ready_closed(fd);
	return e == -EINTR ? 0 : e; /* on Linux the descriptor is closed then */
}
