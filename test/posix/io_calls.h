/* io_calls.h - calls that wait for a descriptor, each as one function with the kernel's result, on a descriptor where
 * nothing comes. Included once a test. */
#ifndef IO_CALLS_H
#define IO_CALLS_H

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum restart { ALWAYS, UNLESS_LIMITED, NEVER };

/* Where nothing comes, until the test sends. out: to send one byte to; -1: there is no such thing. */
static void quiet_pipe(int *in, int *out)
{
	int p[2];

	CHECK_EQ(pipe(p), 0);
	*in = p[0];
	*out = p[1];
}

static void quiet_socket(int *in, int *out)
{
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	*in = s[0];
	*out = s[1];
}

/* Full, so that it cannot be written to. */
static void full_pipe(int *in, int *out)
{
	char block[4096] = { 0 };
	int flags;

	quiet_pipe(out, in);
	flags = fcntl(*in, F_GETFL);
	CHECK_EQ(fcntl(*in, F_SETFL, flags | O_NONBLOCK), 0);
	while (write(*in, block, sizeof block) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(fcntl(*in, F_SETFL, flags), 0);
}

static void full_socket(int *in, int *out)
{
	char block[4096] = { 0 };

	quiet_socket(in, out);
	while (send(*in, block, sizeof block, MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(errno, EAGAIN);
}

static void listening(int *in, int *out)
{
	static int n;
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path + 1, 64, "kochab-quiet-%d-%d", (int)getpid(), __atomic_add_fetch(&n, 1, __ATOMIC_RELAXED));
	*in = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(bind(*in, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(listen(*in, 4), 0);
	*out = -1;
}

static long do_read(int fd)
{
	char c;
	return read(fd, &c, 1);
}

static long do_readv(int fd)
{
	char c[2];
	struct iovec v[2] = { { c, 1 }, { c + 1, 1 } };
	return readv(fd, v, 2);
}

static long do_recv(int fd)
{
	char c;
	return recv(fd, &c, 1, 0);
}

static long do_recvmsg(int fd)
{
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	return recvmsg(fd, &m, 0);
}

static long do_accept(int fd) { return accept(fd, NULL, NULL); }

static long do_write(int fd)
{
	char c[8192] = { 0 };
	return write(fd, c, sizeof c);
}

static long do_send(int fd)
{
	char c[8192] = { 0 };
	return send(fd, c, sizeof c, MSG_NOSIGNAL);
}

static long do_sendmsg(int fd)
{
	char c[8192] = { 0 };
	struct iovec v = { c, sizeof c };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

static long do_poll(int fd)
{
	struct pollfd p[2] = { { fd, POLLIN, 0 }, { -1, 0, 0 } };
	return poll(p, 2, -1);
}

static long do_ppoll(int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	struct timespec t = { 60, 0 };
	sigset_t none;

	sigemptyset(&none);
	return ppoll(&p, 1, &t, &none);
}

static long do_select(int fd)
{
	struct timeval t = { 60, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	return select(fd + 1, &in, NULL, NULL, &t);
}

static long do_epoll_wait(int fd)
{
	static __thread int set = -1;
	struct epoll_event ev = { .events = EPOLLIN };

	if (set < 0)
		set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0 || errno == EEXIST);
	return epoll_wait(set, &ev, 1, -1);
}

static const struct quiet {
	const char *name;
	void (*open)(int *in, int *out);
	long (*call)(int fd);
	enum restart restart;
	int limit; /* the socket option for its time */
} quiets[] = {
	{ "read of a pipe", quiet_pipe, do_read, ALWAYS, 0 },
	{ "readv of a pipe", quiet_pipe, do_readv, ALWAYS, 0 },
	{ "read of a socket", quiet_socket, do_read, UNLESS_LIMITED, SO_RCVTIMEO },
	{ "readv of a socket", quiet_socket, do_readv, UNLESS_LIMITED, SO_RCVTIMEO },
	{ "recv", quiet_socket, do_recv, UNLESS_LIMITED, SO_RCVTIMEO },
	{ "recvmsg", quiet_socket, do_recvmsg, UNLESS_LIMITED, SO_RCVTIMEO },
	{ "accept", listening, do_accept, UNLESS_LIMITED, SO_RCVTIMEO },
	{ "write to a pipe", full_pipe, do_write, ALWAYS, 0 },
	{ "write to a socket", full_socket, do_write, UNLESS_LIMITED, SO_SNDTIMEO },
	{ "send", full_socket, do_send, UNLESS_LIMITED, SO_SNDTIMEO },
	{ "sendmsg", full_socket, do_sendmsg, UNLESS_LIMITED, SO_SNDTIMEO },
	{ "poll", quiet_pipe, do_poll, NEVER, 0 },
	{ "ppoll", quiet_pipe, do_ppoll, NEVER, 0 },
	{ "select", quiet_pipe, do_select, NEVER, 0 },
	{ "epoll_wait", quiet_pipe, do_epoll_wait, NEVER, 0 },
};

enum { QUIETS = sizeof quiets / sizeof *quiets };

static inline void quiet_close(int in, int out)
{
	close(in);
	if (out >= 0)
		close(out);
}

#endif
