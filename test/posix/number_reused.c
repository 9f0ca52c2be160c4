/* A call that has begun concerns the file that its number meant at that time, until the call
 * returns. This holds whichever thread closes the number, by whichever call, and whatever file the
 * number means next. The call ends as on its first file, or gets the data that come to that file;
 * it takes no data of a different file. The test closes numbers in each way during each kind of
 * wait.
 * timeout: 120
 * sleeps: yes */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum { TRIES = 4, NAP_US = 15000 };

static int fd, peer;  /* the file that is waited for, and its peer */
static FILE *stream;  /* the same */
static char got[64];
static long result;
static int failed, begun;

/* ---- ways to wait: as read does, 0 at the end, or bytes into got ----------------------------- */

static long w_read(void) { return read(fd, got, sizeof got); }
static long w_recv(void) { return recv(fd, got, sizeof got, 0); }
static long w_number(void) { return syscall(SYS_read, fd, got, sizeof got); }
static long w_recvfrom(void) { return recvfrom(fd, got, sizeof got, 0, NULL, NULL); }

static long w_readv(void)
{
	struct iovec v[2] = { { got, 1 }, { got + 1, sizeof got - 1 } };

	return readv(fd, v, 2);
}

static long w_recvmsg(void)
{
	struct iovec v = { got, sizeof got };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return recvmsg(fd, &m, 0);
}

/* Calls that only look: the number that the file has beside shows the result. */
static int beside;

static long look_result(int ready)
{
	return ready == 1 ? recv(beside, got, sizeof got, MSG_DONTWAIT) : -1;
}

static long w_poll(void)
{
	struct pollfd p[2] = { { -1, 0, 0 }, { fd, POLLIN, 0 } };
	int n = poll(p, 2, -1);

	return p[1].revents & POLLNVAL ? -2 : look_result(n);
}

static long w_select(void)
{
	fd_set s;

	FD_ZERO(&s);
	FD_SET(fd, &s);
	if (select(fd + 1, &s, NULL, NULL, NULL) != 1 || !FD_ISSET(fd, &s))
		return -1;
	return look_result(1);
}

static long w_epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN };

	return look_result(epoll_wait(fd, &e, 1, -1));
}

static long w_fgets(void) { return fgets(got, sizeof got, stream) ? (long)strlen(got) : 0; }
static long w_fread(void) { return (long)fread(got, 1, 4, stream); }

static long w_getc(void)
{
	int c = getc(stream);

	got[0] = (char)c;
	return c == EOF ? 0 : 1;
}

static long w_getline(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n = getline(&line, &room, stream);

	if (n > 0)
		memcpy(got, line, (size_t)n < sizeof got ? (size_t)n : sizeof got);
	free(line);
	return n < 0 ? 0 : n;
}

static long w_splice(void)
{
	int p[2];
	long n;

	CHECK_EQ(pipe(p), 0);
	n = splice(fd, NULL, p[1], NULL, 4, 0);
	if (n > 0)
		CHECK_EQ(read(p[0], got, sizeof got), n);
	close(p[0]);
	close(p[1]);
	return n;
}

struct way {
	const char *name;
	long (*wait)(void);
	int stream, looks, epoll;
};
static const struct way ways[] = {
	{ "read", w_read, 0, 0, 0 },	   { "recv", w_recv, 0, 0, 0 },	    { "readv", w_readv, 0, 0, 0 },
	{ "recvfrom", w_recvfrom, 0, 0, 0 }, { "recvmsg", w_recvmsg, 0, 0, 0 }, { "syscall", w_number, 0, 0, 0 },
	{ "poll", w_poll, 0, 1, 0 },	   { "select", w_select, 0, 1, 0 }, { "epoll_wait", w_epoll, 0, 1, 1 },
	{ "fgets", w_fgets, 1, 0, 0 },	   { "fread", w_fread, 1, 0, 0 },   { "getc", w_getc, 1, 0, 0 },
	{ "getline", w_getline, 1, 0, 0 }, { "splice", w_splice, 0, 0, 0 },
};

/* ---- ways to close --------------------------------------------------------------------------- */

static int reused; /* the file that the number is to mean next is there already: for dup2 */

static void c_close(int n) { CHECK_EQ(close(n), 0); }
static void c_dup2(int n) { CHECK_EQ(dup2(reused, n), n); }
static void c_dup3(int n) { CHECK_EQ(dup3(reused, n, 0), n); }
static void c_number(int n) { CHECK_EQ(syscall(SYS_close, n), 0); }

static void c_range(int n)
{
	if (syscall(SYS_close_range, n, n, 0))
		close(n);
}

static void c_fclose(int n)
{
	FILE *f = fdopen(n, "r");

	CHECK(f != NULL);
	CHECK_EQ(fclose(f), 0);
}

static const struct {
	const char *name;
	void (*close)(int n);
	int over;
} closes[] = { { "close", c_close, 0 }, { "dup2", c_dup2, 1 },	  { "dup3", c_dup3, 1 },
	       { "syscall", c_number, 0 }, { "close_range", c_range, 0 }, { "fclose", c_fclose, 0 } };

/* ------------------------------------------------------------------------------------------------------------------ */

static void *waits(void *way)
{
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	result = ((const struct way *)way)->wait();
	return NULL;
}

/* Makes a round; returns whether it was right. ends: the peer is shut before; else bytes come to
 * the old file after. */
static int round_of(const struct way *w, unsigned how, int ends, useconds_t nap)
{
	int p[2], q[2], n, right, extra;
	pthread_t t;
	char c[8];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, q), 0);
	CHECK_EQ(write(q[1], "new\n", 4), 4);
	fd = p[0];
	peer = p[1];
	reused = q[0];
	beside = w->looks ? dup(fd) : -1;
	if (w->epoll) {
		struct epoll_event e = { .events = EPOLLIN };

		fd = epoll_create1(0);
		CHECK_EQ(epoll_ctl(fd, EPOLL_CTL_ADD, p[0], &e), 0);
	}
	stream = w->stream ? fdopen(fd, "r") : NULL;
	n = fd;
	result = -9;
	memset(got, 0, sizeof got);
	__atomic_store_n(&begun, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_create(&t, NULL, waits, (void *)(uintptr_t)w), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		usleep(500);
	usleep(nap);
	if (stream)
		CHECK_EQ(fileno(stream), n);
	if (ends)
		shutdown(p[0], SHUT_RDWR);
	closes[how].close(n);
	if (!closes[how].over)
		CHECK_EQ(dup2(q[0], n), n);
	if (!ends)
		CHECK_EQ(send(peer, "old\n", 4, MSG_NOSIGNAL), 4);
	CHECK_EQ(pthread_join(t, NULL), 0);
	right = ends ? result == 0 : (result == 4 || (w->wait == w_getc && result == 1)) && got[0] == 'o';
	/* nothing was taken of the new file */
	extra = (int)recv(q[0], c, sizeof c, MSG_DONTWAIT);
	right &= extra == 4;
	if (stream)
		fclose(stream); /* and the number with it */
	else
		close(n);
	if (w->epoll)
		close(p[0]);
	if (beside >= 0)
		close(beside);
	close(p[1]);
	close(q[0]);
	close(q[1]);
	return right;
}

/* On a machine with much to do a thread may not have begun yet: then it was about the new file.
 * Once more, later. */
static void check(const struct way *w, unsigned how, int ends)
{
	useconds_t nap = NAP_US;

	for (int i = 0; i < TRIES; i++, nap *= 3)
		if (round_of(w, how, ends, nap))
			return;
	fprintf(stderr, "%s, %s, %s: wrong %d times, the last result was %ld\n", w->name, closes[how].name,
		ends ? "shut down before" : "goes on", TRIES, result);
	failed++;
}

/* ---- listeners, writers, queues -------------------------------------------------------------- */

static int listener(struct sockaddr_in *a)
{
	socklen_t n = sizeof *a;
	int l = socket(AF_INET, SOCK_STREAM, 0);

	memset(a, 0, sizeof *a);
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(bind(l, (struct sockaddr *)a, n), 0);
	CHECK_EQ(listen(l, 5), 0);
	CHECK_EQ(getsockname(l, (struct sockaddr *)a, &n), 0);
	return l;
}

static int error;

static void *accepts(void *unused)
{
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	result = accept(fd, NULL, NULL);
	error = errno;
	return unused;
}

static int accept_round(int ends, useconds_t nap)
{
	struct sockaddr_in a, b;
	int n = listener(&a), m, c = socket(AF_INET, SOCK_STREAM, 0), right;
	pthread_t t;

	fd = n;
	__atomic_store_n(&begun, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_create(&t, NULL, accepts, NULL), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		usleep(500);
	usleep(nap);
	if (ends)
		shutdown(n, SHUT_RDWR);
	close(n);
	m = listener(&b);
	CHECK_EQ(connect(c, (struct sockaddr *)(ends ? &b : &a), sizeof a), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	right = ends ? result == -1 && error == EINVAL : result >= 0;
	if (result >= 0)
		close((int)result);
	close(m);
	close(c);
	return right;
}

enum { BYTES = 1 << 20 };
static char *many;

static void *writes(void *unused)
{
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	result = write(fd, many, BYTES);
	return unused;
}

static int write_round(useconds_t nap)
{
	int p[2], q[2], right;
	long all = 0, n;
	pthread_t t;

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	fd = p[0];
	__atomic_store_n(&begun, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_create(&t, NULL, writes, NULL), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		usleep(500);
	usleep(nap);
	close(p[0]);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, q), 0);
	while ((n = read(p[1], many + BYTES, BYTES)) > 0)
		all += n;
	CHECK_EQ(pthread_join(t, NULL), 0);
	right = result == BYTES && all == BYTES && recv(q[1], many + BYTES, 1, MSG_DONTWAIT) < 0;
	close(p[1]);
	close(q[0]);
	close(q[1]);
	return right;
}

static void *receives(void *unused)
{
	__atomic_store_n(&begun, 1, __ATOMIC_SEQ_CST);
	result = mq_receive(fd, got, sizeof got, NULL);
	return unused;
}

static mqd_t queue(int i)
{
	struct mq_attr a = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	char name[64];
	mqd_t q;

	snprintf(name, sizeof name, "/kochab-reused-%d-%d", (int)getpid(), i);
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (q >= 0)
		mq_unlink(name);
	return q;
}

/* -1: none are to be had. */
static int queue_round(useconds_t nap)
{
	mqd_t old = queue(0), other, new;
	pthread_t t;

	if (old < 0)
		return -1;
	other = dup(old);
	fd = old;
	__atomic_store_n(&begun, 0, __ATOMIC_SEQ_CST);
	CHECK_EQ(pthread_create(&t, NULL, receives, NULL), 0);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		usleep(500);
	usleep(nap);
	mq_close(old);
	new = queue(1);
	CHECK_EQ(mq_send(new, "new", 3, 0), 0);
	CHECK_EQ(mq_send(other, "old", 3, 0), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	mq_close(new);
	mq_close(other);
	return result == 3 && got[0] == 'o';
}

static void check_others(void)
{
	int right[4] = { 0 };
	useconds_t nap = NAP_US;

	many = calloc(2, BYTES);
	for (int i = 0; i < TRIES; i++, nap *= 3) {
		right[0] = right[0] || accept_round(1, nap);
		right[1] = right[1] || accept_round(0, nap);
		right[2] = right[2] || write_round(nap);
		right[3] = right[3] || queue_round(nap);
	}
	for (int i = 0; i < 4; i++)
		if (!right[i]) {
			fprintf(stderr, "%s: wrong %d times\n",
				(const char *[]){ "accept, shut down", "accept", "write", "mq_receive" }[i], TRIES);
			failed++;
		}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
		for (unsigned how = 0; how < sizeof closes / sizeof *closes; how++)
			for (int ends = 0; ends < 2; ends++)
				check(&ways[i], how, ends && !ways[i].epoll);
	check_others();
	return failed != 0;
}
