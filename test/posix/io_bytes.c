/* Blocking transfers move all their bytes: large writes by every call, with a reader that takes
 * little at a time; a receive with MSG_WAITALL collects all bytes; a signal or an error in the
 * middle returns the part; records of at most PIPE_BUF bytes stay whole. */
#include "io_calls.h"

#include <limits.h>
#include <netinet/in.h>

enum { LARGE = 1 << 20, PARTS = 40, MOST = 30000 };

/* room for a read behind the end, which finds nothing there */
static unsigned char source[LARGE], sink[LARGE + MOST];
static int in, out;
static long sent;

static void handler(int sig) { (void)sig; }

/* ---- all bytes ---------------------------------------------------------------------------- */

static long by_write(void) { return write(out, source, LARGE); }
static long by_send(void) { return send(out, source, LARGE, 0); }

/* Makes pieces of different lengths, some of them empty. */
static int pieces(struct iovec *v)
{
	size_t at = 0;

	for (int i = 0; i < PARTS; i++) {
		size_t n = i == PARTS - 1 ? LARGE - at : i % 5 == 0 ? 0 : (size_t)(i * 997);

		v[i] = (struct iovec){ source + at, n };
		at += n;
	}
	return PARTS;
}

static long by_writev(void)
{
	struct iovec v[PARTS];

	return writev(out, v, pieces(v));
}

static long by_sendmsg(void)
{
	struct iovec v[PARTS];
	struct msghdr m = { .msg_iov = v, .msg_iovlen = (size_t)pieces(v) };

	return sendmsg(out, &m, 0);
}

static long by_sendmmsg(void)
{
	struct iovec v[PARTS];
	struct mmsghdr m[PARTS] = { { { 0 }, 0 } };
	long n = 0;
	int r;

	pieces(v);
	for (int i = 0; i < PARTS; i++)
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &v[i], .msg_iovlen = 1 };
	r = sendmmsg(out, m, PARTS, 0);
	CHECK_EQ(r, PARTS);
	for (int i = 0; i < r; i++) {
		CHECK_EQ(m[i].msg_len, v[i].iov_len);
		n += m[i].msg_len;
	}
	return n;
}

static void *send_all(void *how)
{
	sent = ((long (*)(void))(uintptr_t)how)();
	close(out);
	return NULL;
}

static void receive_bit_by_bit(void)
{
	size_t at = 0;
	long n;

	memset(sink, 0, sizeof sink);
	while ((n = read(in, sink + at, at % 3 ? MOST : 5000)) > 0)
		at += (size_t)n;
	CHECK_EQ(n, 0);
	CHECK_EQ(at, LARGE);
	CHECK_EQ(memcmp(source, sink, LARGE), 0);
}

static void all_of_it(void (*open)(int *, int *), long (*how)(void))
{
	pthread_t t;

	open(&in, &out);
	CHECK_EQ(pthread_create(&t, NULL, send_all, (void *)(uintptr_t)how), 0);
	receive_bit_by_bit();
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(sent, LARGE);
	close(in);
}

/* ---- collected ---------------------------------------------------------------------------- */

static void *send_slowly(void *unused)
{
	for (size_t at = 0; at < 50000; at += 5000) {
		CHECK_EQ(write(out, source + at, 5000), 5000);
		sched_yield();
	}
	close(out);
	return unused;
}

static void collected(bool message, size_t ask, long get)
{
	struct iovec v[3] = { { sink, 100 }, { sink + 100, 0 }, { sink + 100, ask - 100 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3 };
	pthread_t t;

	quiet_socket(&in, &out);
	memset(sink, 0, sizeof sink);
	CHECK_EQ(pthread_create(&t, NULL, send_slowly, NULL), 0);
	CHECK_EQ(message ? recvmsg(in, &m, MSG_WAITALL) : recv(in, sink, ask, MSG_WAITALL), get);
	CHECK_EQ(memcmp(source, sink, (size_t)get), 0);
	if (get < 50000)
		while (read(in, sink, LARGE) > 0)
			;
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(in);
}

/* ---- a part ------------------------------------------------------------------------------- */

static void *write_much(void *unused)
{
	sent = write(out, source, LARGE);
	return unused;
}

static void part_by_signal(void (*open)(int *, int *))
{
	pthread_t t;

	open(&in, &out);
	sent = 0;
	CHECK_EQ(pthread_create(&t, NULL, write_much, NULL), 0);
	CHECK_EQ(read(in, sink, 1000), 1000);
	usleep(5000);
	while (!__atomic_load_n(&sent, __ATOMIC_RELAXED)) {
		CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
		usleep(2000);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(sent > 0 && sent < LARGE);
	quiet_close(in, out);
}

static void part_by_limit(void)
{
	struct timeval tv = { 0, 20000 };

	quiet_socket(&in, &out);
	CHECK_EQ(setsockopt(out, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv), 0);
	write_much(NULL);
	CHECK(sent > 0 && sent < LARGE);
	CHECK_EQ(write(out, source, 1), -1);
	CHECK_EQ(errno, EAGAIN);
	quiet_close(in, out);
}

static void part_by_end(void (*open)(int *, int *))
{
	pthread_t t;

	open(&in, &out);
	CHECK_EQ(pthread_create(&t, NULL, write_much, NULL), 0);
	CHECK_EQ(read(in, sink, 1000), 1000);
	usleep(3000);
	close(in);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(sent > 0 && sent < LARGE);
	CHECK_EQ(write(out, source, 1), -1);
	CHECK_EQ(errno, EPIPE);
	close(out);
}

static void part_without_wait(void (*open)(int *, int *))
{
	open(&in, &out);
	CHECK_EQ(fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK), 0);
	write_much(NULL);
	CHECK(sent > 0 && sent < LARGE);
	CHECK_EQ(write(out, source, 8192), -1);
	CHECK_EQ(errno, EAGAIN);
	quiet_close(in, out);
}

/* The peer of a connection closes it with unread data. */
static void *wait_reset(void *unused)
{
	CHECK_EQ(recv(in, sink, 1, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	return unused;
}

static void reset(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct linger hard = { 1, 0 };
	socklen_t n = sizeof a;
	int l = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t t;

	CHECK_EQ(bind(l, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(listen(l, 1), 0);
	CHECK_EQ(getsockname(l, (struct sockaddr *)&a, &n), 0);
	out = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_EQ(connect(out, (struct sockaddr *)&a, sizeof a), 0);
	in = accept(l, NULL, NULL);
	CHECK(in >= 0);
	CHECK_EQ(pthread_create(&t, NULL, wait_reset, NULL), 0);
	usleep(3000);
	CHECK_EQ(setsockopt(out, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
	close(out);
	CHECK_EQ(pthread_join(t, NULL), 0);
	quiet_close(in, l);
}

/* ---- records ------------------------------------------------------------------------------ */

enum { WRITERS = 4, RECORDS = 50, RECORD = 3000 };

static void *write_records(void *arg)
{
	char r[RECORD];

	memset(r, 'a' + (int)(long)arg, sizeof r);
	for (int i = 0; i < RECORDS; i++)
		CHECK_EQ(write(out, r, sizeof r), RECORD);
	return NULL;
}

static void records(void)
{
	pthread_t t[WRITERS];
	char r[RECORD];

	quiet_pipe(&in, &out);
	for (long i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, write_records, (void *)i), 0);
	for (int i = 0; i < WRITERS * RECORDS; i++) {
		size_t have = 0;

		while (have < sizeof r) {
			long n = read(in, r + have, sizeof r - have);

			CHECK(n > 0);
			have += (size_t)n;
		}
		for (int k = 1; k < RECORD; k++)
			if (r[k] != r[0])
				CHECK_EQ(r[k], r[0]);
	}
	for (int i = 0; i < WRITERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	quiet_close(in, out);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	for (size_t i = 0; i < LARGE; i++)
		source[i] = (unsigned char)(i * 7 + i / 1000);
	all_of_it(quiet_pipe, by_write);
	all_of_it(quiet_pipe, by_writev);
	all_of_it(quiet_socket, by_write);
	all_of_it(quiet_socket, by_writev);
	all_of_it(quiet_socket, by_send);
	all_of_it(quiet_socket, by_sendmsg);
	all_of_it(quiet_socket, by_sendmmsg);
	for (int message = 0; message < 2; message++) {
		collected(message, 42000, 42000);
		collected(message, 60000, 50000);
	}
	part_by_signal(quiet_pipe);
	part_by_signal(quiet_socket);
	part_by_limit();
	part_by_end(quiet_pipe);
	part_by_end(quiet_socket);
	part_without_wait(quiet_pipe);
	part_without_wait(quiet_socket);
	reset();
	records();
	return 0;
}
