/* kb_io_*: sockets and pipes in blocking and non-blocking mode, through connect and accept, with
 * deadlines, cancelling, closing and peers that go away. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <kochab/io.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

enum { CLIENTS = 24, ROUNDS = 20, LONG = 1 << 20 };

static struct sockaddr_in address;
static int mode; /* 0 or SOCK_NONBLOCK */

static int listening(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0);
	socklen_t n = sizeof address;

	address =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_EQ(bind(s, (struct sockaddr *)&address, sizeof address), 0);
	CHECK_EQ(getsockname(s, (struct sockaddr *)&address, &n), 0);
	CHECK_EQ(listen(s, 64), 0);
	return s;
}

static void *serves(void *arg)
{
	int s = kb_io_accept4((int)(intptr_t)arg, NULL, NULL, mode, KB_FOREVER);
	char b[64];
	ssize_t n;

	CHECK(s >= 0);
	while ((n = kb_io_read(s, b, sizeof b, KB_FOREVER)) > 0)
		CHECK_EQ(kb_io_write(s, b, (size_t)n, KB_FOREVER), n);
	CHECK_EQ(n, 0);
	CHECK_EQ(kb_io_close(s), 0);
	return NULL;
}

static void *asks(void *arg)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0);
	char b[64], r[64];

	CHECK_EQ(kb_io_connect(s, (struct sockaddr *)&address, sizeof address, KB_FOREVER), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + i % sizeof b, got = 0;

		memset(b, (int)i, n);
		CHECK_EQ(kb_io_send(s, b, n, 0, KB_FOREVER), n);
		while (got < n) {
			ssize_t k = kb_io_recv(s, r + got, n - got, 0, KB_FOREVER);

			CHECK(k > 0);
			got += (size_t)k;
		}
		CHECK_EQ(memcmp(b, r, n), 0);
	}
	CHECK_EQ(kb_io_close(s), 0);
	return arg;
}

static void server(void)
{
	kb_thread_t t[2 * CLIENTS];
	int s = listening();

	for (unsigned i = 0; i < CLIENTS; i++) {
		CHECK_EQ(kb_thread_create(&t[2 * i], NULL, serves, (void *)(intptr_t)s), 0);
		CHECK_EQ(kb_thread_create(&t[2 * i + 1], NULL, asks, NULL), 0);
	}
	for (unsigned i = 0; i < 2 * CLIENTS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(kb_io_accept4(s, NULL, NULL, 0, kb_now() + 1000000), -ETIMEDOUT);
	CHECK_EQ(kb_io_close(s), 0);
	{
		int c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0);

		CHECK_EQ(kb_io_connect(c, (struct sockaddr *)&address, sizeof address, KB_FOREVER),
			-ECONNREFUSED);
		CHECK_EQ(kb_io_close(c), 0);
	}
}

/* ---- ends ------------------------------------------------------------------------------------ */

struct reader {
	int fd;
	ssize_t result;
	uint64_t deadline;
};

static void *reads(void *arg)
{
	struct reader *r = arg;
	static char b[LONG];

	r->result = kb_io_read(r->fd, b, sizeof b, r->deadline);
	return NULL;
}

static kb_thread_t start(struct reader *r, int fd, uint64_t deadline)
{
	kb_thread_t t;

	*r = (struct reader){ fd, 0, deadline };
	CHECK_EQ(kb_thread_create(&t, NULL, reads, r), 0);
	kb_sleep(2000000);
	return t;
}

static void end(kb_thread_t t, const struct reader *r, ssize_t result)
{
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	CHECK_EQ(r->result, result);
}

static void pair(int p[2])
{
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | mode, 0, p), 0);
}

static void ends(void)
{
	struct linger reset = { 1, 0 };
	struct reader r;
	kb_thread_t t;
	int p[2];

	pair(p);
	t = start(&r, p[0], kb_now() + 3000000);
	end(t, &r, -ETIMEDOUT);
	CHECK_EQ(kb_io_read(p[0], &r, 1, 0), -ETIMEDOUT);
	t = start(&r, p[0], KB_FOREVER);
	CHECK_EQ(kb_io_cancel(t), 0);
	end(t, &r, -ECANCELED);
	t = start(&r, p[0], KB_FOREVER);
	CHECK_EQ(kb_io_close(p[0]), 0);
	end(t, &r, -EBADF);
	CHECK_EQ(kb_io_read(p[0], &r, 1, KB_FOREVER), -EBADF);
	CHECK_EQ(kb_io_close(p[0]), -EBADF);
	CHECK_EQ(kb_io_send(p[1], &r, 1, 0, KB_FOREVER), -EPIPE);
	CHECK_EQ(kb_io_close(p[1]), 0);
	/* the kernel reports the end of datagrams only to a thread that waits in it */
	CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | mode, 0, p), 0);
	t = start(&r, p[0], KB_FOREVER);
	CHECK_EQ(shutdown(p[0], SHUT_RD), 0);
	end(t, &r, 0);
	CHECK_EQ(kb_io_close(p[0]) | kb_io_close(p[1]), 0);
	/* the peer goes away in the middle */
	{
		int s = listening(), c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0), a;

		CHECK_EQ(kb_io_connect(c, (struct sockaddr *)&address, sizeof address, KB_FOREVER), 0);
		a = kb_io_accept4(s, NULL, NULL, 0, KB_FOREVER);
		CHECK(a >= 0);
		CHECK_EQ(setsockopt(a, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
		t = start(&r, c, KB_FOREVER);
		CHECK_EQ(kb_io_close(a), 0);
		end(t, &r, -ECONNRESET);
		kb_io_close(c);
		kb_io_close(s);
	}
}

/* No descriptor is left for accept: it reports that at once, and goes on
 * when there is a descriptor. */
static void no_descriptor(void)
{
	struct rlimit old, low;
	int s = listening(), c = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | mode, 0), a, next;

	CHECK_EQ(kb_io_connect(c, (struct sockaddr *)&address, sizeof address, KB_FOREVER), 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
	next = dup(0);
	close(next);
	low = old;
	low.rlim_cur = (rlim_t)next;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
	CHECK_EQ(kb_io_accept4(s, NULL, NULL, 0, KB_FOREVER), -EMFILE);
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
	a = kb_io_accept4(s, NULL, NULL, 0, KB_FOREVER);
	CHECK(a >= 0);
	kb_io_close(a), kb_io_close(c), kb_io_close(s);
}

/* ---- large transfers, messages, poll, odd descriptors ---------------------------------------- */

static void *drains(void *arg)
{
	const int fd = *(int *)arg;
	char *b = malloc(LONG);
	size_t got = 0;
	ssize_t n;

	while ((n = kb_io_read(fd, b, 60000, KB_FOREVER)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			CHECK_EQ((unsigned char)b[i], (got + (size_t)i) % 251);
		got += (size_t)n;
	}
	CHECK_EQ(n, 0);
	free(b);
	return (void *)got;
}

static void large(bool through_pipe)
{
	unsigned char *b = malloc(LONG);
	struct iovec v[3] = { { b, 1000 }, { b + 1000, LONG - 2000 }, { b + LONG - 1000, 1000 } };
	kb_thread_t t;
	void *got;
	int p[2];

	if (through_pipe)
		CHECK_EQ(pipe2(p, O_CLOEXEC | (mode ? O_NONBLOCK : 0)), 0);
	else
		pair(p);
	for (unsigned i = 0; i < LONG; i++)
		b[i] = (unsigned char)(i % 251);
	CHECK_EQ(kb_thread_create(&t, NULL, drains, &p[0]), 0);
	CHECK_EQ(kb_io_writev(p[1], v, 3, KB_FOREVER), LONG);
	CHECK_EQ(kb_io_close(p[1]), 0);
	CHECK_EQ(kb_thread_join(t, &got), 0);
	CHECK_EQ((size_t)got, LONG);
	/* no thread reads: a part goes, then the deadline passes */
	CHECK_EQ(kb_io_close(p[0]), 0);
	pair(p);
	CHECK(kb_io_write(p[1], b, LONG, kb_now() + 2000000) > 0);
	CHECK_EQ(kb_io_write(p[1], b, LONG, kb_now() + 2000000), -ETIMEDOUT);
	kb_io_close(p[0]), kb_io_close(p[1]);
	free(b);
}

static void others(void)
{
	char a[] = "abc", b[8];
	struct iovec v = { a, 3 }, w = { b, 8 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 }, k = { .msg_iov = &w, .msg_iovlen = 1 };
	int p[2], e = eventfd(0, EFD_CLOEXEC | (mode ? EFD_NONBLOCK : 0));
	struct pollfd f[2];
	uint64_t one = 1;

	pair(p);
	f[0] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	f[1] = (struct pollfd){ .fd = e, .events = POLLIN };
	CHECK_EQ(kb_io_poll(f, 2, kb_now() + 1000000), 0);
	CHECK_EQ(kb_io_read(e, &one, sizeof one, kb_now() + 1000000), -ETIMEDOUT);
	CHECK_EQ(kb_io_write(e, &one, sizeof one, KB_FOREVER), sizeof one);
	CHECK_EQ(kb_io_poll(f, 2, KB_FOREVER), 1);
	CHECK_EQ(f[1].revents, POLLIN);
	CHECK_EQ(kb_io_read(e, &one, sizeof one, KB_FOREVER), sizeof one);
	CHECK_EQ(kb_io_sendmsg(p[1], &m, 0, KB_FOREVER), 3);
	CHECK_EQ(kb_io_recvmsg(p[0], &k, 0, KB_FOREVER), 3);
	CHECK_EQ(kb_io_recvmsg(p[0], &k, 0, kb_now() + 1000000), -ETIMEDOUT);
	CHECK_EQ(kb_io_recv(e, b, 1, 0, KB_FOREVER), -ENOTSOCK);
	CHECK_EQ(kb_io_readv(p[0], &w, -1, KB_FOREVER), -EINVAL);
	kb_io_close(p[0]), kb_io_close(p[1]), kb_io_close(e);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(kb_init(), 0);
	for (mode = 0; mode <= SOCK_NONBLOCK; mode += SOCK_NONBLOCK) {
		server();
		ends();
		no_descriptor();
		large(false);
		large(true);
		others();
	}
	CHECK_EQ(kb_io_cancel(NULL), ESRCH);
	return 0;
}
