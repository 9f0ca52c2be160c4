/* Calls that wait for a descriptor: many threads block in each, on any number of virtual
 * processors, while main computes and then serves one after another. Each gets the byte that was
 * meant for it. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6 };

/* A pair of descriptors: a thread waits at `in`, main serves `out`. */
struct end {
	int in, out;
	char name[64];
	struct sockaddr_un address;
};

static struct end ends[THREADS];
static int begun, got;

static void pipe_open(struct end *e)
{
	int p[2];

	CHECK_EQ(pipe(p), 0);
	e->in = p[0];
	e->out = p[1];
}

static void pair_open(struct end *e, int type)
{
	int s[2];

	CHECK_EQ(socketpair(AF_UNIX, type, 0, s), 0);
	e->in = s[0];
	e->out = s[1];
}

static void stream_open(struct end *e) { pair_open(e, SOCK_STREAM); }
static void packet_open(struct end *e) { pair_open(e, SOCK_DGRAM); }

static void event_open(struct end *e)
{
	e->in = e->out = eventfd(0, 0);
	CHECK(e->in >= 0);
}

static void timer_open(struct end *e)
{
	e->in = e->out = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(e->in >= 0);
}

static void queue_open(struct end *e)
{
	struct mq_attr a = { .mq_maxmsg = 2, .mq_msgsize = 8 };

	snprintf(e->name, sizeof e->name, "/kochab-test-%d-%d", (int)getpid(), (int)(e - ends));
	e->in = e->out = mq_open(e->name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (e->in < 0 && (errno == ENOSYS || errno == EACCES || errno == EMFILE))
		SKIP("no message queues here");
	CHECK(e->in >= 0);
	mq_unlink(e->name);
}

static void listen_open(struct end *e)
{
	e->address.sun_family = AF_UNIX;
	snprintf(e->address.sun_path + 1, 64, "kochab-test-%d-%d", (int)getpid(), (int)(e - ends));
	e->in = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_EQ(bind(e->in, (struct sockaddr *)&e->address, sizeof e->address), 0);
	CHECK_EQ(listen(e->in, 4), 0);
	e->out = socket(AF_UNIX, SOCK_STREAM, 0);
}

static void process_open(struct end *e)
{
	pipe_open(e);
	e->name[0] = 0;
	*(pid_t *)(void *)e->name = fork();
	if (*(pid_t *)(void *)e->name == 0) {
		char c;

		close(e->out);
		_exit(read(e->in, &c, 1) == 1 ? c : 1);
	}
}

static void by_byte(struct end *e, char c) { CHECK_EQ(write(e->out, &c, 1), 1); }
static void by_packet(struct end *e, char c) { CHECK_EQ(send(e->out, &c, 1, 0), 1); }
static void by_queue(struct end *e, char c) { CHECK_EQ(mq_send(e->out, &c, 1, 0), 0); }

static void by_event(struct end *e, char c)
{
	uint64_t n = (uint64_t)c;

	CHECK_EQ(write(e->out, &n, sizeof n), sizeof n);
}

static void by_timer(struct end *e, char c)
{
	struct itimerspec t = { .it_value = { 0, 1000 * c } };

	CHECK_EQ(timerfd_settime(e->out, 0, &t, NULL), 0);
}

static void by_connecting(struct end *e, char c)
{
	CHECK_EQ(connect(e->out, (struct sockaddr *)&e->address, sizeof e->address), 0);
	by_byte(e, c);
}

/* ---- the calls that wait; each returns the byte ------------------------------------------- */

static int by_read(struct end *e)
{
	char c = 0;

	CHECK_EQ(read(e->in, &c, 1), 1);
	return c;
}

static int by_number(struct end *e)
{
	char c = 0;

	CHECK_EQ(syscall((e - ends) % 2 ? SYS_read : SYS_readv, e->in, (e - ends) % 2 ? (void *)&c :
			 (void *)&(struct iovec){ &c, 1 }, 1), 1);
	CHECK_EQ(syscall(SYS_read, -1, &c, 1), -1);
	CHECK_EQ(errno, EBADF);
	return c;
}

static int by_readv(struct end *e)
{
	char c = 0, d = 0;
	struct iovec v[3] = { { &d, 0 }, { &c, 1 }, { &d, 1 } };

	CHECK_EQ(readv(e->in, v, 3), 1);
	return c;
}

static int by_recv(struct end *e)
{
	char c = 0;

	CHECK_EQ(recv(e->in, &c, 1, 0), 1);
	return c;
}

static int by_waitall(struct end *e)
{
	char c[2] = { 0 };

	CHECK_EQ(recv(e->in, c, 1, MSG_PEEK), 1);
	CHECK_EQ(recv(e->in, c, 1, MSG_WAITALL), 1);
	return c[0];
}

static int by_recvfrom(struct end *e)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof from;
	char c = 0;

	CHECK_EQ(recvfrom(e->in, &c, 1, 0, (struct sockaddr *)&from, &n), 1);
	return c;
}

static int by_recvmsg(struct end *e)
{
	char c = 0;
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	CHECK_EQ(recvmsg(e->in, &m, 0), 1);
	return c;
}

static int by_recvmmsg(struct end *e)
{
	char c = 0;
	struct iovec v = { &c, 1 };
	struct mmsghdr m[2] = { { { .msg_iov = &v, .msg_iovlen = 1 }, 0 } };

	CHECK_EQ(recvmmsg(e->in, m, 2, MSG_WAITFORONE, NULL), 1);
	CHECK_EQ(m[0].msg_len, 1);
	return c;
}

/* Makes the call by number, as languages without a libc do. */
static int by_numbers(struct end *e)
{
	struct pollfd p = { e->in, POLLIN, 0 };
	char c = 0;
	struct iovec v = { &c, 1 };
	struct mmsghdr m = { { .msg_iov = &v, .msg_iovlen = 1 }, 0 };

	if ((e - ends) % 2)
		CHECK_EQ(syscall(SYS_ppoll, &p, 1, NULL, NULL, 8), 1);
	CHECK_EQ(syscall(SYS_recvmmsg, e->in, &m, 1, 0, NULL), 1);
	CHECK_EQ(m.msg_len, 1);
	return c;
}

static int by_eventfd(struct end *e)
{
	uint64_t n = 0;

	CHECK_EQ(read(e->in, &n, sizeof n), sizeof n);
	return (int)n;
}

static int by_timerfd(struct end *e)
{
	uint64_t n = 0;

	CHECK_EQ(read(e->in, &n, sizeof n), sizeof n);
	CHECK_EQ(n, 1);
	return (int)(e - ends) + 1;
}

static int by_mq_receive(struct end *e)
{
	char c[8] = { 0 };

	CHECK_EQ(mq_receive(e->in, c, sizeof c, NULL), 1);
	return c[0];
}

static int by_accept(struct end *e)
{
	struct sockaddr_un from;
	socklen_t n = sizeof from;
	int fd = (e - ends) % 2 ? accept(e->in, (struct sockaddr *)&from, &n)
		: accept4(e->in, NULL, NULL, SOCK_CLOEXEC);
	char c = 0;

	CHECK(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), (e - ends) % 2 ? 0 : FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	CHECK_EQ(read(fd, &c, 1), 1);
	close(fd);
	return c;
}

static int by_poll(struct end *e)
{
	struct pollfd p[3] = { { -1, POLLIN, 0 }, { e->in, POLLIN, 0 }, { e->in, POLLPRI, 0 } };

	CHECK_EQ(poll(p, (e - ends) % 2 ? 2 : 3, -1), 1);
	CHECK_EQ(p[1].revents, POLLIN);
	return by_read(e);
}

static int by_ppoll(struct end *e)
{
	struct pollfd p = { e->in, POLLIN, 0 };
	struct timespec t = { 60, 0 };
	sigset_t none;

	sigemptyset(&none);
	CHECK_EQ(ppoll(&p, 1, &t, (e - ends) % 2 ? &none : NULL), 1);
	return by_read(e);
}

static int by_select(struct end *e)
{
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(e->in, &in);
	CHECK_EQ((e - ends) % 2 ? select(e->in + 1, &in, &out, NULL, NULL) :
				  pselect(e->in + 1, &in, NULL, NULL, NULL, NULL), 1);
	CHECK(FD_ISSET(e->in, &in));
	return by_read(e);
}

static int by_epoll(struct end *e)
{
	struct epoll_event ev = { EPOLLIN, { .u32 = 77 } };
	int set = epoll_create1(0);

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, e->in, &ev), 0);
	ev.data.u32 = 0;
	CHECK_EQ((e - ends) % 2 ? epoll_wait(set, &ev, 1, -1) : epoll_pwait(set, &ev, 1, 60000, NULL),
		1);
	CHECK_EQ(ev.data.u32, 77);
	close(set);
	return by_read(e);
}

static int by_waitpid(struct end *e)
{
	pid_t pid = *(pid_t *)(void *)e->name;
	int status = 0;

	CHECK_EQ((e - ends) % 2 ? waitpid(pid, &status, 0) : wait4(pid, &status, 0, NULL), pid);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static const struct way {
	const char *name;
	void (*open)(struct end *);
	int (*wait)(struct end *);
	void (*serve)(struct end *, char);
} ways[] = {
	{ "read of a pipe", pipe_open, by_read, by_byte },
	{ "read by its number", pipe_open, by_number, by_byte },
	{ "readv of a pipe", pipe_open, by_readv, by_byte },
	{ "read of a socket", stream_open, by_read, by_byte },
	{ "readv of a socket", stream_open, by_readv, by_byte },
	{ "recv", stream_open, by_recv, by_byte },
	{ "recv of all", stream_open, by_waitall, by_byte },
	{ "recvfrom", packet_open, by_recvfrom, by_packet },
	{ "recvmsg", packet_open, by_recvmsg, by_packet },
	{ "recvmmsg", packet_open, by_recvmmsg, by_packet },
	{ "ppoll and recvmmsg by number", packet_open, by_numbers, by_packet },
	{ "eventfd", event_open, by_eventfd, by_event },
	{ "timerfd", timer_open, by_timerfd, by_timer },
	{ "mq_receive", queue_open, by_mq_receive, by_queue },
	{ "accept", listen_open, by_accept, by_connecting },
	{ "poll", stream_open, by_poll, by_byte },
	{ "ppoll", pipe_open, by_ppoll, by_byte },
	{ "select", stream_open, by_select, by_byte },
	{ "epoll", pipe_open, by_epoll, by_byte },
	{ "waitpid", process_open, by_waitpid, by_byte },
};

static const struct way *way;

static void *wait_for_it(void *arg)
{
	long i = (long)arg;

	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	CHECK_EQ(way->wait(&ends[i]), i + 1);
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void everybody_begins(void)
{
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		sched_yield();
	usleep(2000);
}

static void one_way(void)
{
	pthread_t t[THREADS];

	begun = got = 0;
	memset(ends, 0, sizeof ends);
	for (long i = 0; i < THREADS; i++)
		way->open(&ends[i]);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_for_it, (void *)i), 0);
	everybody_begins();
	CHECK_EQ(__atomic_load_n(&got, __ATOMIC_RELAXED), 0);
	for (long i = THREADS - 1; i >= 0; i--)
		way->serve(&ends[i], (char)(i + 1));
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (long i = 0; i < THREADS; i++) {
		close(ends[i].in);
		if (ends[i].out != ends[i].in)
			close(ends[i].out);
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = &ways[i];
		one_way();
	}
	return 0;
}
