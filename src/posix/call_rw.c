/* posix/call_rw.c - read, write, receive, send: a single attempt for each, and the functions
 * that programs call. Contract in call_priv.h. Callers: programs; stdio, call_number. Runs on the
 * calling thread. May switch; cancellation points. */
#include "posix/call_priv.h"

#include <limits.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "os/sys.h"

/* A call with the arguments of its attempts. */
struct transfer {
	struct kbi_call c;
	void *p;
	size_t n;
	int flags;
	void *address;
	void *len; /* socklen_t *, or the length; recvmmsg: its deadline */
};

static struct transfer *transfer_of(struct kbi_call *c)
{
	return (struct transfer *)(void *)c;
}

/* Returns n, or the most bytes that the kernel moves in a call. */
static size_t clamp_bytes(size_t n)
{
	enum { MOST = 0x7ffff000 };

	return n < MOST ? n : MOST;
}

/* ---- buffers ------------------------------------------------------------------------------ */

enum { WINDOW = 16 };

static size_t total_bytes(const struct iovec *v, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].iov_len;
	return clamp_bytes(sum);
}

/* Stores the buffers without their first `done` bytes, as many as fit; returns how many. */
static size_t remaining_buffers(const struct iovec *v, size_t n, size_t done,
	struct iovec out[WINDOW])
{
	size_t k = 0;

	for (size_t i = 0; i < n && k < WINDOW; i++) {
		if (done >= v[i].iov_len) {
			done -= v[i].iov_len;
			continue;
		}
		out[k++] = (struct iovec){ (char *)v[i].iov_base + done, v[i].iov_len - done };
		done = 0;
	}
	return k;
}

/* Returns flags for a socket. A call that has moved a part returns the part when its socket is
 * shut, and raises no SIGPIPE; on a pipe it does both. */
static inline int try_flags(const struct kbi_call *c)
{
	return kbi_unlikely(c && c->done) ? MSG_DONTWAIT | MSG_NOSIGNAL : MSG_DONTWAIT;
}

/* Adds the result of an attempt. Returns the sum once n bytes are moved, else -EAGAIN. */
static long add_part(struct kbi_call *c, long r, size_t n)
{
	if (r < 0)
		return kbi_call_told(r);
	c->done += (size_t)r;
	return c->done >= n ? (long)c->done : -EAGAIN;
}

/* ---- read and write ----------------------------------------------------------------------- */

/* Returns whether there is something to read. *unsure: only an error shows, which promises nothing:
 * a userfaultfd that may block shows an error for ever. */
static bool is_readable(int fd, bool *unsure)
{
	struct pollfd p = { fd, POLLIN, 0 };
	bool any = kbi_sys_poll_now(&p, 1) > 0;

	return any && !(*unsure = p.revents == POLLERR);
}

/* Reads a descriptor that is neither a file nor has a non-blocking read: the thread that sees it
 * ready reads it before another thread does. c: NULL, or the call that has begun, which reads from
 * a copy as it may block. -EAGAIN with *unsure: poll(2) cannot tell. */
static long look_and_read(struct kbi_call *c, int fd, const struct iovec *v, int n, bool *unsure)
{
	const int number = c ? c->number : fd;
	bool gate = !c;
	long r = -EAGAIN;

	if (c ? !is_readable(fd, unsure) : !kbi_call_gate_now(number))
		return -EAGAIN;
	if (c) {
		fd = kbi_call_step_out(c);
		gate = c->inside ? kbi_call_gate_now(number) : kbi_call_gate(number);
	}
	if (is_readable(fd, unsure))
		r = kbi_sys(SYS_readv, fd, v, n);
	if (gate)
		kbi_call_gate_open(number);
	return r;
}

/* True for a terminal whose settings decide how long a read waits, or which stops a reader in the
 * background. */
static bool terminal_decides(int fd)
{
	struct termios t;
	int group = 0;

	if (kbi_sys(SYS_ioctl, fd, TCGETS, &t))
		return false;
	if (!(t.c_lflag & ICANON) && (t.c_cc[VMIN] == 0 || t.c_cc[VTIME]))
		return true;
	return kbi_sys(SYS_ioctl, fd, TIOCGPGRP, &group) == 0 && group != getpgrp();
}

/* Makes a call that may wait in the kernel where poll(2) cannot tell. For a cancellation point it
 * calls libc's function, in which a cancellation finds the thread. */
static long transfer_apart(ssize_t (*real)(int, const struct iovec *, int), long number, int fd,
	const struct iovec *v, int n, bool cancels, bool surely)
{
	KBI_CALL_BLOCKING(surely);
	return cancels ? kbi_call_result(real(fd, v, n)) : kbi_sys(number, fd, v, n);
}

/* Makes a call on a file that waits for the disk. */
static long transfer_lent(ssize_t (*real)(int, const struct iovec *, int), long number, int fd,
	const struct iovec *v, int n, bool cancels)
{
	KBI_CALL_LENT();
	return cancels ? kbi_call_result(real(fd, v, n)) : kbi_sys(number, fd, v, n);
}

static KBI_NOINLINE long read_other(struct kbi_call *c, int fd, unsigned kind,
	const struct iovec *v, int n, bool cancels)
{
	bool unsure = false;
	long r;

	if (kind == KBI_CALL_DISK && kbi_call_known(fd) & KBI_CALL_DIRECT)
		return transfer_lent(KBI_CALL_REAL(readv), SYS_readv, c ? kbi_call_step_out(c) : fd,
			v, n, cancels);
	if (kind == KBI_CALL_FILE || kind == KBI_CALL_DISK)
		return kbi_sys(SYS_readv, c ? kbi_call_step_out(c) : fd, v, n);
	r = look_and_read(c, fd, v, n, &unsure);
	if (r == -EAGAIN && (unsure || (kind == KBI_CALL_TTY && terminal_decides(fd))))
		r = transfer_apart(KBI_CALL_REAL(readv), SYS_readv, c ? kbi_call_step_out(c) : fd,
			v, n, cancels, true);
	return r;
}

/* A terminal with some room is ready, yet the kernel waits there for the rest: so there is no
 * gate. */
static KBI_NOINLINE long write_other(struct kbi_call *c, int fd, unsigned kind,
	const struct iovec *v, int n, bool cancels)
{
	if (kind != KBI_CALL_FILE && kind != KBI_CALL_DISK && !kbi_sys_is_ready(fd, POLLOUT))
		return -EAGAIN;
	fd = c ? kbi_call_step_out(c) : fd;
	if (kind == KBI_CALL_FILE)
		return kbi_sys(SYS_writev, fd, v, n);
	return kind == KBI_CALL_DISK
		? transfer_lent(KBI_CALL_REAL(writev), SYS_writev, fd, v, n, cancels)
		: transfer_apart(KBI_CALL_REAL(writev), SYS_writev, fd, v, n, cancels, false);
}

/* True if RWF_NOWAIT is refused: by the descriptor, an old kernel, or a filter of system calls. */
static inline bool knows_no_nowait(long r)
{
	return kbi_unlikely(r == -EOPNOTSUPP || r == -ENOSYS || r == -EPERM);
}

/* A direction: the system calls for a single buffer, for several, for a stream without blocking,
 * and for any file; `refused`: the mark of a stream without RWF_NOWAIT. */
struct way {
	int one, many, stream, any;
	unsigned refused;
	long (*other)(struct kbi_call *c, int fd, unsigned kind, const struct iovec *v, int n,
		bool cancels);
};
static const struct way in = { SYS_recvfrom, SYS_recvmsg, SYS_preadv2, SYS_readv,
	KBI_CALL_NO_NOWAIT_READ, read_other };
static const struct way out = { SYS_sendto, SYS_sendmsg, SYS_pwritev2, SYS_writev,
	KBI_CALL_NO_NOWAIT_WRITE, write_other };

/* Tries once to move n buffers, which are not all empty. -EAGAIN: nothing yet. c: NULL, or the call
 * that has begun. Inlined: after a system call each return costs as much as many instructions. */
static inline __attribute__((always_inline)) long transfer_now(const struct way *w,
	struct kbi_call *c, int fd, const struct iovec *v, int n, bool cancels)
{
	unsigned k = kbi_call_flags(fd), kind = k & KBI_CALL_KINDS;
	long r;

	if (kbi_likely(kind == KBI_CALL_SOCKET)) {
		struct msghdr m = { .msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n };

		r = n == 1 ? kbi_sys(w->one, fd, v->iov_base, v->iov_len, try_flags(c), NULL, NULL) :
			     kbi_sys(w->many, fd, &m, try_flags(c));
		if (kbi_likely(r != -ENOTSOCK))
			return r;
		kind = kbi_call_look_up(fd) & KBI_CALL_KINDS;
	} else if (kbi_likely(kind == KBI_CALL_STREAM && !(k & w->refused))) {
		r = kbi_sys(w->stream, fd, v, n, -1, -1, RWF_NOWAIT);
		if (kbi_likely(!knows_no_nowait(r)))
			return r;
		kbi_call_note(fd, k | w->refused);
	}
	r = w->other(c, fd, kind, v, n, cancels);
	/* a pipe's end in the wrong direction is never ready */
	return r == -EAGAIN && !c && kbi_sys(w->any, fd, NULL, 0) < 0 ? -EBADF : r;
}

static long try_read(struct kbi_call *c)
{
	if (kbi_unlikely(c->shut))
		return kbi_sys(SYS_readv, c->fd, transfer_of(c)->p, transfer_of(c)->n);
	return transfer_now(&in, c, c->fd, transfer_of(c)->p, (int)transfer_of(c)->n, c->cancels);
}

static KBI_NOINLINE long read_later(int fd, const struct iovec *v, int n, bool cancels, bool empty)
{
	struct transfer t = { KBI_CALL(.attempt = try_read, .fd = fd, .events = POLLIN,
		.cancels = cancels, .looks = true, .time_limit = SO_RCVTIMEO, .empty = empty),
			      .p = (void *)v, .n = (size_t)n };

	return kbi_call_wait(&t.c);
}

static inline __attribute__((always_inline)) long read_by(int fd, const struct iovec *v, int n,
	bool cancels)
{
	uint32_t ending = kbi_posix_me.ending;
	bool empty;
	long r;

	if (cancels)
		kbi_cancel_test();
	/* of a socket, too: the kernel's read of 0 bytes leaves a datagram in the queue */
	if (kbi_unlikely(v->iov_len == 0) && !total_bytes(v, (size_t)n))
		return kbi_sys(SYS_readv, fd, v, n);
	empty = kbi_call_is_empty(fd);
	r = empty ? -EAGAIN : transfer_now(&in, NULL, fd, v, n, cancels);
	if (kbi_unlikely(r == -EINTR) && kbi_posix_me.ending != ending)
		return r;
	if (kbi_call_again(r))
		r = read_later(fd, v, n, cancels, empty);
	else
		kbi_call_found(fd, r);
	kbi_call_note_received(fd, r, n == 1 ? v->iov_len : 0);
	return r;
}

inline __attribute__((always_inline)) long kbi_call_read(int fd, void *p, size_t n, bool cancels)
{
	struct iovec v = { p, clamp_bytes(n) };

	return read_by(fd, &v, 1, cancels);
}

long kbi_call_readv(int fd, const struct iovec *v, int n, bool cancels)
{
	return read_by(fd, v, n, cancels);
}

static long try_write(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	struct iovec left[WINDOW] = { { NULL, 0 } };
	size_t k;

	if (!c->done)
		return add_part(c, transfer_now(&out, c, c->fd, t->p, (int)t->n, c->cancels),
			total_bytes(t->p, t->n));
	k = remaining_buffers(t->p, t->n, c->done, left);
	return add_part(c, transfer_now(&out, c, c->fd, left, (int)k, c->cancels),
		total_bytes(t->p, t->n));
}

static KBI_NOINLINE long write_later(int fd, const struct iovec *v, int n, long done,
	uint64_t since, bool cancels)
{
	struct transfer t = { KBI_CALL(.attempt = try_write, .fd = fd, .events = POLLOUT,
		.cancels = cancels, .looks = true, .time_limit = SO_SNDTIMEO,
		.done = done > 0 ? (size_t)done : 0,
				       .since = since),
			      .p = (void *)v, .n = (size_t)n };

	return kbi_call_wait(&t.c);
}

static inline __attribute__((always_inline)) long write_by(int fd, const struct iovec *v, int n,
	size_t bytes, bool cancels)
{
	uint32_t handled = kbi_posix_me.handled, ending = kbi_posix_me.ending;
	uint64_t since = kbi_hold_now();
	long r;

	if (cancels)
		kbi_cancel_test();
	r = transfer_now(&out, NULL, fd, v, n, cancels);
	if (kbi_likely(r == (long)bytes)) {
		kbi_call_has_given(r);
		return r;
	}
	if (r < 0 ? !kbi_call_again(r) : kbi_call_is_on_disk(fd))
		return r;
	if (r < 0 ? r == -EINTR && kbi_posix_me.ending != ending : kbi_posix_me.handled != handled)
		return r;
	return write_later(fd, v, n, r, since, cancels);
}

inline __attribute__((always_inline)) long kbi_call_write(int fd, const void *p, size_t n,
	bool cancels)
{
	struct iovec v = { (void *)p, clamp_bytes(n) };

	return write_by(fd, &v, 1, v.iov_len, cancels);
}

long kbi_call_writev(int fd, const struct iovec *v, int n, bool cancels)
{
	return write_by(fd, v, n, total_bytes(v, (size_t)n), cancels);
}

/* ---- receive ------------------------------------------------------------------------------ */

/* Returns the flags of an attempt. A socket whose peer has shut down returns at once even if it may
 * block. */
static int receive_flags(const struct transfer *t)
{
	return kbi_unlikely(t->c.shut) ? t->flags : t->flags | MSG_DONTWAIT;
}

static long receive_now(const struct transfer *t)
{
	return kbi_sys(SYS_recvfrom, t->c.fd, (char *)t->p + t->c.done, t->n - t->c.done,
		receive_flags(t), t->address, t->len);
}

/* Adds an attempt with MSG_WAITALL: until the stream ends, or n bytes have come. */
static long add_waitall_part(struct kbi_call *c, long r, size_t n)
{
	return r == 0 ? (long)c->done : add_part(c, r, n);
}

static long try_receive(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	long r = receive_now(t);

	return t->flags & MSG_WAITALL ? add_waitall_part(c, r, t->n) : r;
}

/* True if MSG_WAITALL applies: it has a meaning on streams only. */
static bool is_waitall_stream(int fd, int flags)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return (flags & MSG_WAITALL) && kbi_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type,
		&len) == 0 &&
	       type == SOCK_STREAM;
}

/* True if r is a part and the call waits for all n bytes. */
static inline bool wants_more(int fd, long r, size_t n, int flags)
{
	return kbi_unlikely(flags & MSG_WAITALL) && !(flags & MSG_DONTWAIT) && r > 0 && (size_t)r < n &&
		is_waitall_stream(fd, flags);
}

static KBI_NOINLINE long receive_later(struct transfer *t, long r, bool cancels)
{
	if ((t->flags & MSG_WAITALL) && !is_waitall_stream(t->c.fd, t->flags))
		t->flags &= ~MSG_WAITALL;
	t->c.done = r > 0 ? (size_t)r : 0;
	t->c.cancels = cancels;
	t->c.at_once = !!(t->flags & MSG_DONTWAIT);
	t->c.time_limit = SO_RCVTIMEO;
	t->c.events = t->flags & MSG_OOB ? POLLPRI : POLLIN;
	return kbi_call_wait(&t->c);
}

/* Notes the result of a receive with MSG_DONTWAIT: such a caller waits by another call, but not
 * after it has found something. */
static inline long received_at_once(long r)
{
	kbi_call_has_taken(r);
	return r;
}

long kbi_call_recvfrom(int fd, void *p, size_t n, int flags, void *from, socklen_t *len,
	bool cancels)
{
	bool empty = !flags && kbi_call_is_empty(fd);
	uint64_t since = kbi_unlikely(flags & MSG_WAITALL) ? kbi_hold_now() : 0;
	long r;

	n = clamp_bytes(n);
	if (cancels)
		kbi_cancel_test();
	r = empty ? -EAGAIN : kbi_sys(SYS_recvfrom, fd, p, n, flags | MSG_DONTWAIT, from, len);
	if (flags & MSG_DONTWAIT)
		return received_at_once(r);
	if (kbi_call_again(r) || wants_more(fd, r, n, flags)) {
		struct transfer t = { KBI_CALL(.attempt = try_receive, .fd = fd, .since = since,
			.empty = empty),
				      p, n, flags, from, len };

		r = receive_later(&t, r, cancels);
	} else {
		kbi_call_found(fd, r);
	}
	kbi_call_note_received(fd, r, flags ? 0 : n);
	return r;
}

static long try_receive_message(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	const struct msghdr *m = t->p;
	struct iovec left[WINDOW];
	struct msghdr part = { .msg_iov = left };
	long r;

	if (!c->done) {
		r = kbi_sys(SYS_recvmsg, c->fd, t->p, receive_flags(t));
		return t->flags & MSG_WAITALL ? add_waitall_part(c, r, t->n) : r;
	}
	part.msg_iovlen = remaining_buffers(m->msg_iov, m->msg_iovlen, c->done, left);
	return add_waitall_part(c, kbi_sys(SYS_recvmsg, c->fd, &part, t->flags | MSG_DONTWAIT),
		t->n);
}

long kbi_call_recvmsg(int fd, struct msghdr *m, int flags, bool cancels)
{
	uint64_t since = kbi_unlikely(flags & MSG_WAITALL) ? kbi_hold_now() : 0;
	size_t n = 0;
	long r;

	if (cancels)
		kbi_cancel_test();
	r = kbi_sys(SYS_recvmsg, fd, m, flags | MSG_DONTWAIT);
	if (flags & MSG_DONTWAIT)
		return received_at_once(r);
	if (kbi_unlikely((flags & MSG_WAITALL) && r >= -EAGAIN && r != -EFAULT))
		n = total_bytes(m->msg_iov, m->msg_iovlen);
	/* a message with descriptors ends where they are attached */
	if (kbi_call_again(r) || (n && !m->msg_controllen && wants_more(fd, r, n, flags))) {
		struct transfer t = { KBI_CALL(.attempt = try_receive_message, .fd = fd, .since = since),
				      m, n, flags, NULL, NULL };

		return receive_later(&t, r, cancels);
	}
	return received_at_once(r);
}

static long try_receive_many(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	struct mmsghdr *m = t->p;
	long r = kbi_sys(SYS_recvmmsg, c->fd, m + c->done, t->n - c->done,
		(unsigned)receive_flags(t), NULL);

	r = add_part(c, r, t->flags & MSG_WAITFORONE ? 1 : t->n);
	/* like the kernel, looks at the time limit only after a message */
	return c->done && t->len && kbi_timer_now() >= *(uint64_t *)t->len ? (long)c->done : r;
}

long kbi_call_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, struct timespec *limit,
	bool cancels)
{
	uint64_t until;
	struct transfer t = { KBI_CALL(.attempt = try_receive_many, .fd = fd, .since = kbi_hold_now()),
			      m, n, flags, NULL, limit ? &until : NULL };
	long r;

	if (limit && (!kbi_posix_time_ok(limit) || limit->tv_sec < 0))
		return -EINVAL;
	if (limit)
		until = kbi_posix_after(limit);
	if (cancels)
		kbi_cancel_test();
	r = n ? try_receive_many(&t.c) : 0;
	return kbi_call_again(r) ? receive_later(&t, (long)t.c.done, cancels) : r;
}

/* ---- send --------------------------------------------------------------------------------- */

static long try_send(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	long r = kbi_sys(SYS_sendto, c->fd, (char *)t->p + c->done, t->n - c->done,
		t->flags | try_flags(c), t->address, t->len);

	return add_part(c, r, t->n);
}

static KBI_NOINLINE long send_later(struct transfer *t, long r, bool cancels)
{
	t->c.done = r > 0 ? (size_t)r : 0;
	t->c.cancels = cancels;
	t->c.at_once = !!(t->flags & MSG_DONTWAIT);
	t->c.time_limit = SO_SNDTIMEO;
	t->c.events = POLLOUT;
	return kbi_call_wait(&t->c);
}

long kbi_call_sendto(int fd, const void *p, size_t n, int flags, const void *to, socklen_t len,
	bool cancels)
{
	uint64_t since = kbi_hold_now();
	long r;

	n = clamp_bytes(n);
	if (cancels)
		kbi_cancel_test();
	r = kbi_sys(SYS_sendto, fd, p, n, flags | MSG_DONTWAIT, to, len);
	if (!(flags & MSG_DONTWAIT) && kbi_unlikely(kbi_call_again(r) || (r >= 0 && (size_t)r < n))) {
		struct transfer t = { KBI_CALL(.attempt = try_send, .fd = fd, .since = since), (void *)p, n,
			flags, (void *)to, (void *)(uintptr_t)len };

		return send_later(&t, r, cancels);
	}
	kbi_call_has_given(r);
	return r;
}

static long try_send_message(struct kbi_call *c)
{
	struct transfer *t = transfer_of(c);
	struct iovec left[WINDOW];
	struct msghdr part = *(const struct msghdr *)t->p;

	if (!c->done)
		return add_part(c, kbi_sys(SYS_sendmsg, c->fd, t->p, t->flags | MSG_DONTWAIT), t->n);
	/* descriptors and other control data went with the first byte */
	part.msg_control = NULL;
	part.msg_controllen = 0;
	part.msg_iovlen = remaining_buffers(part.msg_iov, part.msg_iovlen, c->done, left);
	part.msg_iov = left;
	return add_part(c, kbi_sys(SYS_sendmsg, c->fd, &part, t->flags | try_flags(c)), t->n);
}

static long finish_message(int fd, const struct msghdr *m, int flags, long r, uint64_t since,
	bool cancels)
{
	struct transfer t = { KBI_CALL(.attempt = try_send_message, .fd = fd, .since = since),
		(void *)m, total_bytes(m->msg_iov, m->msg_iovlen), flags, NULL, NULL };

	if (!kbi_call_again(r) && (r < 0 || (size_t)r >= t.n)) {
		kbi_call_has_given(r);
		return r;
	}
	return send_later(&t, r, cancels);
}

long kbi_call_sendmsg(int fd, const struct msghdr *m, int flags, bool cancels)
{
	uint64_t since = kbi_hold_now();
	long r;

	if (cancels)
		kbi_cancel_test();
	r = kbi_sys(SYS_sendmsg, fd, m, flags | MSG_DONTWAIT);
	if (flags & MSG_DONTWAIT)
		return r;
	return r >= 0 || kbi_call_again(r) ? finish_message(fd, m, flags, r, since, cancels) : r;
}

/* Sends one message after another; the first send has had the result r. Returns how many were sent.
 * All go to the file that fd meant at the first. */
static KBI_NOINLINE long send_each(int fd, struct mmsghdr *m, unsigned n, int flags, long r,
	uint64_t since, bool cancels)
{
	unsigned i = r > 0 ? (unsigned)r - 1 : 0;
	KBI_CALL_KEEPS(keeps);
	int number = fd;

	kbi_call_keep(&keeps, &fd);
	if (r > 0 && kbi_hold_is_closed_since(number, since))
		return r;
	since = kbi_hold_now();
	r = r > 0 ? (long)m[i].msg_len : -EAGAIN;
	for (;; r = kbi_call_sendmsg(fd, &m[i].msg_hdr, flags, false)) {
		r = finish_message(fd, &m[i].msg_hdr, flags, r, since, cancels && i == 0);
		if (r < 0)
			return i ? (long)i : r;
		m[i].msg_len = (unsigned)r;
		if ((size_t)r < total_bytes(m[i].msg_hdr.msg_iov, m[i].msg_hdr.msg_iovlen) ||
			++i == n)
			return (long)i + (i < n);
	}
}

long kbi_call_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags, bool cancels)
{
	uint64_t since = kbi_hold_now();
	const struct msghdr *last;
	long r;

	if (cancels)
		kbi_cancel_test();
	n = n < IOV_MAX ? n : IOV_MAX; /* the kernel's limit */
	r = kbi_sys(SYS_sendmmsg, fd, m, n, flags | MSG_DONTWAIT);
	if (r == 0 || (r < 0 && !kbi_call_again(r)))
		return r;
	last = r > 0 ? &m[r - 1].msg_hdr : NULL;
	if (r == (long)n && m[r - 1].msg_len == total_bytes(last->msg_iov, last->msg_iovlen))
		return r;
	return flags & MSG_DONTWAIT ? r : send_each(fd, m, n, flags, r, since, cancels);
}

/* ---- the functions ------------------------------------------------------------------------ */

#define TRANSFER(result, name, parameters, arguments, direct, work, cancels, why) \
	KBI_CALL_DEFINE(rw, result, name, parameters, arguments, direct, work)
#include "posix/call.def"

KBI_CALL_ALIAS(__read, read, kbi_call_rw_read);
KBI_CALL_ALIAS(__write, write, kbi_call_rw_write);
KBI_CALL_ALIAS(__recv, recv, kbi_call_rw_recv);
KBI_CALL_ALIAS(__send, send, kbi_call_rw_send);
KBI_CALL_ALIAS(__sendmmsg, sendmmsg, kbi_call_rw_sendmmsg);
