/* posix/turns_at_calls: threads whose calls find their data at once do not keep the processor from
 * each other for a quantum each; the quantum is so long here that the tick ends no turn. A round
 * for each kind of call: two threads make the call again and again, CALLS times; and main waits for
 * an event that is sent when the first thread is amid its calls. Counted: how many calls a thread
 * has made when the second begins, and when main goes on. On kernel threads the kernel decides.
 * matrix: run-only vps=1 sched=rotator,rotator-paper,lb2,steal option=KOCHAB_QUANTUM=10000000
 * body: thread: another virtual processor, asleep, begins when the kernel lets it */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test.h"

/* WORK_NS: more than a turn that a call may end. FEW: of CALLS: the other thread's turns, and looks
 * for events, come soon. A thread that sends keeps the processor for longer: a hundred times. */
enum { CALLS = 2000, WORK_NS = 20000, FEW = 100 };

struct way {
	const char *name;
	void (*call)(int fd[2]); /* fd[0] has more than enough to read, or room, for all calls */
	int few;
};

static void by_read(int fd[2])
{
	char c;

	CHECK_EQ(read(fd[0], &c, 1), 1);
}

static void by_readv(int fd[2])
{
	char c;
	struct iovec v = { &c, 1 };

	CHECK_EQ(readv(fd[0], &v, 1), 1);
}

static void by_recv(int fd[2])
{
	char c;

	CHECK_EQ(recv(fd[0], &c, 1, 0), 1);
}

static void by_recv_at_once(int fd[2])
{
	char c;

	CHECK_EQ(recv(fd[0], &c, 1, MSG_DONTWAIT), 1);
}

static void by_recvmsg(int fd[2])
{
	char c;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	CHECK_EQ(recvmsg(fd[0], &m, 0), 1);
}

static void by_poll(int fd[2])
{
	struct pollfd p = { .fd = fd[0], .events = POLLIN };

	CHECK_EQ(poll(&p, 1, -1), 1);
}

static void by_select(int fd[2])
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd[0], &set);
	CHECK_EQ(select(fd[0] + 1, &set, NULL, NULL, NULL), 1);
}

static void by_epoll(int fd[2])
{
	struct epoll_event e = { .events = EPOLLIN };
	static _Thread_local int ep = -1;

	if (ep < 0) {
		ep = epoll_create1(EPOLL_CLOEXEC);
		CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd[0], &e), 0);
	}
	CHECK_EQ(epoll_wait(ep, &e, 1, -1), 1);
}

static void by_write(int fd[2])
{
	char c = 0;

	CHECK_EQ(write(fd[1], &c, 1), 1);
}

static void by_send(int fd[2])
{
	char c = 0;

	CHECK_EQ(send(fd[1], &c, 1, 0), 1);
}

static const struct way ways[] = {
	{ "read", by_read, FEW },
	{ "readv", by_readv, FEW },
	{ "recv", by_recv, FEW },
	{ "recv at once", by_recv_at_once, FEW },
	{ "recvmsg", by_recvmsg, FEW },
	{ "poll", by_poll, FEW },
	{ "select", by_select, FEW },
	{ "epoll_wait", by_epoll, FEW },
	{ "write", by_write, 10 * FEW },
	{ "send", by_send, 10 * FEW },
};

struct caller {
	const struct way *way;
	int fd[2];
	atomic_int calls;
	struct caller *other;
	int others_at_begin; /* calls that the other thread has made when this begins; it begins with none: 0 */
	int bell;            /* to write to amid the calls; -1: not this thread */
};

static void *calls(void *arg)
{
	struct caller *c = arg;

	c->others_at_begin = atomic_load(&c->other->calls);
	for (int i = 0; i < CALLS; i++) {
		if (i == CALLS / 4 && c->bell >= 0)
			CHECK_EQ(write(c->bell, "", 1), 1);
		c->way->call(c->fd);
		test_compute_ns(WORK_NS);
		atomic_fetch_add(&c->calls, 1);
	}
	return NULL;
}

static void make(struct caller *c, const struct way *way, struct caller *other)
{
	static char many[2 * CALLS];
	int room = 1 << 20;

	*c = (struct caller){ .way = way, .other = other, .bell = -1 };
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, c->fd), 0);
	setsockopt(c->fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	/* in a single piece; a thread that sends has all the room */
	if (way->few == FEW)
		CHECK_EQ(write(c->fd[1], many, sizeof many), sizeof many);
}

static void run(const struct way *way)
{
	struct caller c[2];
	pthread_t t[2];
	int bell[2], after;
	char b;

	CHECK_EQ(pipe2(bell, O_CLOEXEC), 0);
	make(&c[0], way, &c[1]);
	make(&c[1], way, &c[0]);
	c[0].bell = bell[1];
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, calls, &c[i]), 0);
	CHECK_EQ(read(bell[0], &b, 1), 1);
	after = atomic_load(&c[0].calls) - CALLS / 4;
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	printf("%s: the second begins after %d calls of the first; who sleeps goes on after %d\n", way->name,
	       c[1].others_at_begin, after);
	fflush(stdout);
	CHECK(c[0].others_at_begin + c[1].others_at_begin <= way->few);
	CHECK(after <= way->few);
	for (int i = 0; i < 2; i++) {
		close(bell[i]);
		close(c[i].fd[0]);
		close(c[i].fd[1]);
	}
}

int main(void)
{
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
		run(&ways[i]);
	return 0;
}
