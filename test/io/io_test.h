/* io_test.h - shared by the tests of io/ready: reading and writing all
 * data with the internal wait. */
#ifndef KB_IO_TEST_H
#define KB_IO_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <kochab/kochab.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/ready.h"
#include "test.h"

static inline struct kbi_until ready_until(uint64_t ns)
{
	return kbi_waitq_until(ns == KB_FOREVER ? ns : kb_now() + ns);
}

/* Waits once, and holds the file: a close ends the wait. */
static inline int ready_wait(int fd, short events, struct kbi_until until, unsigned turn)
{
	struct kbi_hold h;
	int e = kbi_hold_begin(&h, fd, false, NULL);

	if (e)
		return e;
	e = kbi_ready_wait(&h, events, until, turn);
	e = kbi_hold_fd(&h) < 0 ? EBADF : e;
	kbi_hold_end(&h);
	return e;
}

/* Reads or writes as read(2) or write(2) of a non-blocking descriptor, by the deadline; returns -1
 * and sets errno at an error. */
static inline ssize_t ready_read(int fd, void *p, size_t n, struct kbi_until until)
{
	for (unsigned turn = 0;; turn++) {
		ssize_t r = read(fd, p, n);
		int e;

		if (r >= 0 || errno != EAGAIN)
			return r;
		e = ready_wait(fd, POLLIN, until, turn);
		if (e) {
			errno = e;
			return -1;
		}
	}
}

static inline ssize_t ready_write(int fd, const void *p, size_t n, struct kbi_until until)
{
	for (unsigned turn = 0;; turn++) {
		ssize_t r = write(fd, p, n);
		int e;

		if (r >= 0 || errno != EAGAIN)
			return r;
		e = ready_wait(fd, POLLOUT, until, turn);
		if (e) {
			errno = e;
			return -1;
		}
	}
}

static inline void ready_pair(int fd[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

#endif
