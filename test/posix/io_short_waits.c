/* Threads that wait for a descriptor again and again, each time for a moment, as a server's do: the
 * library's guesses about the descriptor must not be visible. Changes of its mode and its time
 * limit count at once, by any number and call; a thread does not wait for data that another thread
 * left in it, that precedes urgent data or follows a datagram; and a new file under the number is
 * noticed. The peer is a thread that answers. */
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 60, MS = 1000000, SOON = 300 * MS, UNSEEN = 2000 * MS };

static int near, far; /* the two ends of a connection */

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* ---- the peer ----------------------------------------------------------------------------- */

/* Answers each byte until the end. */
static void *answer(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char c;

	while (recv(fd, &c, 1, 0) == 1 && c != '.') {
		nap(20000);
		CHECK_EQ(send(fd, &c, 1, 0), 1);
	}
	return NULL;
}

static void connect_both(int type)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
		b = a;
	socklen_t n = sizeof a;
	int l = socket(AF_INET, type, 0), on = 1;

	near = socket(AF_INET, type, 0);
	CHECK_EQ(bind(l, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(getsockname(l, (struct sockaddr *)&a, &n), 0);
	if (type == SOCK_STREAM) {
		CHECK_EQ(listen(l, 1), 0);
		CHECK_EQ(connect(near, (struct sockaddr *)&a, sizeof a), 0);
		far = accept(l, NULL, NULL);
		CHECK(far >= 0);
		CHECK_EQ(setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
		CHECK_EQ(setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
		close(l);
		return;
	}
	far = l;
	CHECK_EQ(bind(near, (struct sockaddr *)&b, sizeof b), 0);
	CHECK_EQ(getsockname(near, (struct sockaddr *)&b, &n), 0);
	CHECK_EQ(connect(near, (struct sockaddr *)&a, sizeof a), 0);
	CHECK_EQ(connect(far, (struct sockaddr *)&b, sizeof b), 0);
}

/* Makes many short waits of the calling thread for `near`. The peer is a kernel thread: with system
 * scope, and pinned. */
static void converse(int type)
{
	pthread_attr_t a;
	cpu_set_t set;
	pthread_t t;
	char buf[64];

	connect_both(type);
	pthread_attr_init(&a);
	pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM);
	CHECK_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
	CHECK_EQ(pthread_attr_setaffinity_np(&a, sizeof(set), &set), 0);
	CHECK_EQ(pthread_create(&t, &a, answer, (void *)(intptr_t)far), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(send(near, "x", 1, 0), 1);
		CHECK_EQ(i % 2 ? recv(near, buf, sizeof buf, 0) : read(near, buf, sizeof buf), 1);
	}
	CHECK_EQ(send(near, ".", 1, 0), 1);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void end(void)
{
	close(near);
	close(far);
}

static long receives(size_t n, int64_t limit)
{
	char buf[64];
	int64_t since = now();
	long r = recv(near, buf, n, 0);

	CHECK(now() - since < limit);
	return r;
}

/* ---- changes ------------------------------------------------------------------------------ */

static void limit_at(int fd)
{
	struct timeval t = { 0, 30000 };

	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t), 0);
	CHECK_EQ(receives(64, SOON), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void limited(void)
{
	int other;

	converse(SOCK_STREAM);
	limit_at(near);
	end();
	converse(SOCK_STREAM);
	other = dup(near);
	limit_at(other);
	close(other);
	end();
}

static void set_flags(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
}

static void set_by_ioctl(int fd)
{
	int on = 1;

	CHECK_EQ(ioctl(fd, FIONBIO, &on), 0);
}

static void set_by_number(int fd)
{
	CHECK_EQ(syscall(SYS_fcntl, fd, F_SETFL, O_RDWR | O_NONBLOCK), 0);
}

static void nonblocking(void)
{
	static void (*const set[])(int) = { set_flags, set_by_ioctl, set_by_number };
	int other;

	for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
		converse(SOCK_STREAM);
		other = dup(near);
		set[i](other);
		CHECK_EQ(receives(64, SOON), -1);
		CHECK_EQ(errno, EAGAIN);
		close(other);
		end();
	}
}

/* ---- data that was left ------------------------------------------------------------------- */

static void left_by_itself(void)
{
	converse(SOCK_STREAM);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(send(far, "0123456789", 10, 0), 10);
		nap(MS);
		CHECK_EQ(receives(7, SOON), 7);
		CHECK_EQ(receives(64, SOON), 3);
	}
	end();
}

static void *take_two(void *arg)
{
	char buf[2];

	(void)arg;
	CHECK_EQ(recv(near, buf, 2, 0), 2);
	return NULL;
}

/* Another thread got the event. */
static void left_by_others(void)
{
	pthread_t t;

	converse(SOCK_STREAM);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(pthread_create(&t, NULL, take_two, NULL), 0);
		nap(2 * MS);
		CHECK_EQ(send(far, "0123456789", 10, 0), 10);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(receives(64, SOON), 8);
	}
	end();
}

static void left_before_urgent(void)
{
	converse(SOCK_STREAM);
	for (int i = 0; i < 5; i++) {
		size_t n = 0;

		CHECK_EQ(send(far, "ab", 2, 0), 2);
		CHECK_EQ(send(far, "!", 1, MSG_OOB), 1);
		CHECK_EQ(send(far, "cde", 3, 0), 3);
		nap(MS);
		while (n < 5) {
			long r = receives(64, SOON);

			CHECK(r > 0);
			n += (size_t)r;
		}
	}
	end();
}

static void datagrams(void)
{
	converse(SOCK_DGRAM);
	for (int i = 0; i < 5; i++) {
		for (int k = 1; k <= 3; k++)
			CHECK_EQ(send(far, "0123456789", (size_t)k, 0), k);
		nap(MS);
		for (int k = 1; k <= 3; k++)
			CHECK_EQ(receives(64, SOON), k);
	}
	end();
}

/* ---- a new file under the number ---------------------------------------------------------- */

static void *send_soon(void *arg)
{
	nap(5 * MS);
	CHECK_EQ(send(far, "abcd", 4, 0), 4);
	return arg;
}

static void waits_for_another(int64_t limit)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, send_soon, NULL), 0);
	CHECK_EQ(receives(64, limit), 4);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void replaced(bool seen)
{
	int number, old;

	converse(SOCK_STREAM);
	number = near;
	old = far;
	connect_both(SOCK_STREAM);
	CHECK_EQ(seen ? dup2(near, number) : syscall(SYS_dup3, near, number, 0), number);
	close(near);
	close(old);
	near = number;
	waits_for_another(seen ? SOON : UNSEEN);
	end();
}

/* The file lives on under another number, where data comes that no thread takes. */
static void forgotten(void)
{
	int kept[2];

	converse(SOCK_STREAM);
	kept[0] = dup(near);
	kept[1] = far;
	close(near);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(send(kept[1], "x", 1, 0), 1);
		nap(MS / 10);
	}
	converse(SOCK_STREAM);
	waits_for_another(SOON);
	end();
	close(kept[0]);
	close(kept[1]);
}

static void *all(void *arg)
{
	limited();
	nonblocking();
	left_by_itself();
	left_by_others();
	left_before_urgent();
	datagrams();
	replaced(true);
	replaced(false);
	forgotten();
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, all, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
