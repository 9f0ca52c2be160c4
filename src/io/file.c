/* io/file.c - reading and writing by descriptor. Contract in kochab/io.h.
 * Callers: programs. Runs on the caller's stack; may switch.
 *
 * Data that are there are taken at once (RWF_NOWAIT: from the page cache, a pipe, a
 * socket); for the remaining data the call waits as the kind of file allows: by epoll, or
 * beside the thread (io/async). */
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <string.h>

#include "io/async.h"
#include "io/fifo.h"
#include "io/patience.h"
#include "io/ready.h"
#include "os/sys.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif

enum { VECTORS = 1024 /* of a call, as in the kernel */ };
#define OWN_POSITION UINT64_MAX

struct transfer {
	bool out, all; /* out: writes; all: until nothing is left */
	int fd;
	const struct iovec *iov;
	int count;
	uint64_t at; /* OWN_POSITION: the descriptor's position */
	uint64_t since; /* kbi_hold_now before a part was moved */
	bool begun, moved; /* begun: it has waited and holds the file; moved: a part was moved */
	struct kbi_hold hold;
};

/* Transfers by a socket's own call: kernels before 6.4 have RWF_NOWAIT for files only. */
static long transfer_as_message(const struct transfer *t)
{
	struct msghdr m =
		{ .msg_iov = (struct iovec *)(uintptr_t)t->iov, .msg_iovlen = (size_t)t->count };

	return kbi_sys(t->out ? SYS_sendmsg : SYS_recvmsg, t->fd, &m, MSG_DONTWAIT);
}

/* Returns whether the transfer could not be tried, because of the descriptor, an old kernel, or a
 * filter of system calls. */
static bool is_unsupported(long r)
{
	return r == -EOPNOTSUPP || r == -ENOSYS || r == -EPERM;
}

/* Transfers the data that can be had at once; is_unsupported: it cannot be tried. */
static long transfer_at_once(const struct transfer *t)
{
	long r, message;

	do
		r = kbi_sys(t->out ? SYS_pwritev2 : SYS_preadv2, t->fd, t->iov, t->count, t->at,
			t->at >> 32, RWF_NOWAIT);
	while (r == -EINTR);
	if (kbi_likely(!is_unsupported(r)) || t->at != OWN_POSITION)
		return r;
	message = transfer_as_message(t);
	return message == -ENOTSOCK ? r : message;
}

static struct kbi_async request_of_transfer(const struct transfer *t)
{
	return (struct kbi_async){ .what = t->out ? KBI_ASYNC_WRITEV : KBI_ASYNC_READV, .fd = t->fd,
		.address = t->iov, .offset = t->at, .length = (uint32_t)t->count };
}

/* Transfers beside the thread: it would have to wait, most likely for the disk. */
static long transfer_beside(const struct transfer *t, struct kbi_until until)
{
	struct kbi_async a = request_of_transfer(t);

	return kbi_async(&a, until);
}

/* Transfers data that surely have to wait for the disk; then the call is over. */
static long transfer_safely(const struct transfer *t, struct kbi_until until)
{
	struct kbi_async a = request_of_transfer(t);

	return kbi_async_sync(&a, until);
}

/* Transfers in the thread where the kernel has no way to try: a write into the page cache on many
 * file systems, a file of /proc. */
static long transfer_here(const struct transfer *t)
{
	struct kbi_async a = request_of_transfer(t);

	return kbi_async_here(&a);
}

/* ---- once it has waited ---------------------------------------------------------------------- */

static int begin_hold(struct transfer *t)
{
	int e;

	if (t->begun)
		return 0;
	e = kbi_hold_begin(&t->hold, t->fd, false, t->moved ? &t->since : NULL);
	t->begun = !e;
	return e == EAGAIN ? EBADF : e;
}

static void end_hold(struct transfer *t)
{
	if (t->begun)
		kbi_hold_end(&t->hold);
}

static long transfer_held(struct transfer *t)
{
	long r;

	if (!t->begun)
		return transfer_at_once(t);
	kbi_hold_attempt();
	t->fd = kbi_hold_fd(&t->hold);
	r = t->fd < 0 ? -EBADF : transfer_at_once(t);
	kbi_hold_attempted();
	return r;
}

/* Transfers with a copy of the descriptor, in a way that may wait in the
 * kernel or beside the thread. */
static long transfer_with_copy(struct transfer *t, bool here_it_is, struct kbi_until until)
{
	struct transfer copy = *t;
	long r = 0;

	if (t->begun) {
		kbi_hold_attempt();
		copy.fd = kbi_hold_fd(&t->hold) < 0 ? -EBADF : kbi_own_copy(kbi_hold_fd(&t->hold));
		kbi_hold_attempted();
		r = copy.fd < 0 ? copy.fd : 0;
	}
	if (r)
		return r;
	r = here_it_is ? transfer_here(&copy) : transfer_beside(&copy, until);
	if (t->begun)
		kbi_own_drop(copy.fd);
	return r;
}

/* Transfers some of the data. */
static long transfer_some(struct transfer *t, struct kbi_until until)
{
	const short events = t->out ? POLLOUT : POLLIN;

	/* a try would wait for the disk; a program that makes buffers known wants the
	 * disk, not the page cache */
	if (kbi_async_is_direct(t->fd) ||
			(t->at != OWN_POSITION && t->count == 1 && kbi_async_is_known(t->iov)))
		return transfer_beside(t, until);
	if (t->out && kbi_async_is_safe(t->fd))
		return transfer_safely(t, until);
	for (unsigned turn = 0;; turn++) {
		long r = transfer_held(t);
		bool odd = is_unsupported(r);
		int e;

		if (kbi_likely(r != -EAGAIN && !odd))
			return r;
		if (turn > 1 && !odd && !t->out && kbi_ready_is_shut(t->fd))
			return 0;
		if (t->at != OWN_POSITION)
			return odd ? transfer_here(t) : transfer_beside(t, until);
		if (odd && kbi_sys_is_ready(t->fd, events))
			return transfer_with_copy(t, true, until);
		e = begin_hold(t);
		e = e ? e : kbi_ready_wait(&t->hold, events, until, turn);
		if (e == EPERM)
			return transfer_with_copy(t, false, until);
		if (e && e != EINTR)
			return -e;
	}
}

/* Leaves out the first n bytes, which have been moved. copy has room for t->count. */
static void skip_moved(struct transfer *t, struct iovec *copy, size_t n)
{
	int i = 0;

	while (i < t->count && n >= t->iov[i].iov_len)
		n -= t->iov[i++].iov_len;
	memmove(copy, t->iov + i, (size_t)(t->count - i) * sizeof *copy);
	t->iov = copy;
	t->count -= i;
	if (t->count > 0) {
		copy[0].iov_base = (char *)copy[0].iov_base + n;
		copy[0].iov_len -= n;
	}
}

static size_t transfer_length(const struct transfer *t)
{
	size_t n = 0;

	for (int i = 0; i < t->count; i++)
		n += t->iov[i].iov_len;
	return n;
}

/* Transfers the remaining data after a first part of r bytes. */
static ssize_t transfer_rest(struct transfer *t, long r, struct kbi_until until)
{
	struct iovec one, *copy = t->count == 1 ? &one : kbi_sys_map((size_t)t->count * sizeof one);
	const size_t bytes = (size_t)t->count * sizeof one;
	size_t left = transfer_length(t), done = 0;

	while (r > 0) {
		done += (size_t)r;
		if ((size_t)r >= left || !copy)
			break;
		left -= (size_t)r;
		skip_moved(t, copy, (size_t)r);
		if (t->at != OWN_POSITION)
			t->at += (uint64_t)r;
		t->moved = true;
		r = transfer_some(t, until);
	}
	if (copy && copy != &one)
		kbi_sys_unmap(copy, bytes);
	return done > 0 ? (ssize_t)done : r;
}

static ssize_t run_transfer(struct transfer t, uint64_t deadline)
{
	struct kbi_until until = kbi_patience(deadline);
	long r;

	if (t.count < 0 || t.count > VECTORS)
		return -EINVAL;
	if (t.all && t.at == OWN_POSITION)
		t.since = kbi_hold_now();
	r = transfer_some(&t, until);
	if (kbi_unlikely(t.all && r > 0 && (t.count > 1 || (size_t)r < t.iov->iov_len)))
		r = transfer_rest(&t, r, until);
	end_hold(&t);
	return r;
}

/* ---- by the descriptor's position ------------------------------------------------------------ */

ssize_t kb_io_readv(int fd, const struct iovec *iov, int count, uint64_t deadline)
{
	return run_transfer((struct transfer){ .fd = fd, .iov = iov, .count = count,
		.at = OWN_POSITION }, deadline);
}

ssize_t kb_io_read(int fd, void *buf, size_t n, uint64_t deadline)
{
	struct iovec one = { buf, n };

	return kb_io_readv(fd, &one, 1, deadline);
}

ssize_t kb_io_writev(int fd, const struct iovec *iov, int count, uint64_t deadline)
{
	return run_transfer((struct transfer){ .out = true, .all = true, .fd = fd, .iov = iov,
		.count = count, .at = OWN_POSITION }, deadline);
}

ssize_t kb_io_write(int fd, const void *buf, size_t n, uint64_t deadline)
{
	struct iovec one = { (void *)(uintptr_t)buf, n };

	return kb_io_writev(fd, &one, 1, deadline);
}

/* ---- by position ----------------------------------------------------------------------------- */

static ssize_t run_transfer_at(bool out, int fd, const struct iovec *iov, int count, off_t at,
	uint64_t deadline)
{
	if (at < 0)
		return -EINVAL;
	return run_transfer((struct transfer){ .out = out, .all = true, .fd = fd, .iov = iov,
		.count = count, .at = (uint64_t)at }, deadline);
}

ssize_t kb_io_preadv(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline)
{
	return run_transfer_at(false, fd, iov, count, at, deadline);
}

ssize_t kb_io_pwritev(int fd, const struct iovec *iov, int count, off_t at, uint64_t deadline)
{
	return run_transfer_at(true, fd, iov, count, at, deadline);
}

ssize_t kb_io_pread(int fd, void *buf, size_t n, off_t at, uint64_t deadline)
{
	struct iovec one = { buf, n };

	return run_transfer_at(false, fd, &one, 1, at, deadline);
}

ssize_t kb_io_pwrite(int fd, const void *buf, size_t n, off_t at, uint64_t deadline)
{
	struct iovec one = { (void *)(uintptr_t)buf, n };

	return run_transfer_at(true, fd, &one, 1, at, deadline);
}

/* ---- beside the thread in any case ----------------------------------------------------------- */

int kb_io_open(const char *path, int flags, mode_t mode, uint64_t deadline)
{
	struct kbi_async a =
		{ .what = KBI_ASYNC_OPEN, .address = path, .length = mode, .flags = (uint32_t)flags };
	struct kbi_until until = kbi_patience(deadline);
	int fd;

	if (!kbi_async_is_by_hand())
		fd = kbi_fifo_opened((int)kbi_async(&a, until), path, flags, mode, until);
	else if (!kbi_fifo_open(path, flags, mode, until, &fd))
		fd = (int)kbi_async(&a, until);
	kbi_async_new_number(fd);
	return fd;
}

int kb_io_fsync(int fd, uint64_t deadline)
{
	struct kbi_async a = { .what = KBI_ASYNC_FSYNC, .fd = fd };

	return (int)kbi_async_sync(&a, kbi_patience(deadline));
}

int kb_io_fdatasync(int fd, uint64_t deadline)
{
	struct kbi_async a = { .what = KBI_ASYNC_FSYNC, .fd = fd, .flags = 1 };

	return (int)kbi_async_sync(&a, kbi_patience(deadline));
}
