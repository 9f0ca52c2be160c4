/* Calls that wait, made by their numbers through syscall(), as languages without a libc do: many
 * threads in each, without kernel threads to stand in for them, so that a call that kept its
 * virtual processor would stop the program. The kernel stores the time left, and its masks are 8
 * bytes long. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8, NAP_NS = 50000000, LONG = 60 };

static int in[THREADS], out[THREADS], begun;

static const uint64_t lets_in = 0; /* a mask of the kernel's size */

static void open_pipe(int i)
{
	int p[2];

	CHECK_EQ(pipe(p), 0);
	in[i] = p[0];
	out[i] = p[1];
}

static void open_queue(int i)
{
	struct mq_attr a = { .mq_maxmsg = 2, .mq_msgsize = 8 };
	char name[64];

	snprintf(name, sizeof name, "/kochab-number-%d-%d", (int)getpid(), i);
	in[i] = out[i] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	if (in[i] >= 0)
		mq_unlink(name);
}

static void serve_pipe(int i) { CHECK_EQ(write(out[i], "x", 1), 1); }
static void serve_queue(int i) { CHECK(in[i] < 0 || mq_send(out[i], "x", 1, 0) == 0); }

static int was_counted_down(const struct timespec *t)
{
	return t->tv_sec < LONG && t->tv_sec > LONG - 30;
}

static void by_ppoll(int i)
{
	struct pollfd p = { in[i], POLLIN, 0 };
	struct timespec t = { LONG, 0 };

	CHECK_EQ(syscall(SYS_ppoll, &p, 1, &t, i % 2 ? &lets_in : NULL, 8), 1);
	CHECK(was_counted_down(&t));
	CHECK_EQ(syscall(SYS_ppoll, &p, 1, &t, &lets_in, 7), -1);
	CHECK_EQ(errno, EINVAL);
}

static void by_pselect(int i)
{
	struct timespec t = { LONG, 0 };
	const struct {
		const void *mask;
		size_t bytes;
	} m = { i % 2 ? &lets_in : NULL, 8 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(in[i], &set);
	CHECK_EQ(syscall(SYS_pselect6, in[i] + 1, &set, NULL, NULL, &t,
		i % 3 ? (const void *)&m : NULL), 1);
	CHECK(FD_ISSET(in[i], &set) && was_counted_down(&t));
}

#ifdef SYS_select
static void by_select(int i)
{
	struct timeval t = { LONG, 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(in[i], &set);
	CHECK_EQ(syscall(SYS_select, in[i] + 1, &set, NULL, NULL, &t), 1);
	CHECK(FD_ISSET(in[i], &set) && t.tv_sec < LONG);
}
#endif

static void by_epoll(int i)
{
	struct epoll_event ev = { EPOLLIN, { .u32 = 77 } };
	struct timespec t = { LONG, 0 };
	int set = epoll_create1(0);
	long r = -1;

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, in[i], &ev), 0);
	ev.data.u32 = 0;
#ifdef SYS_epoll_pwait2
	if (i % 2)
		r = syscall(SYS_epoll_pwait2, set, &ev, 1, &t, i % 3 ? &lets_in : NULL, 8);
	if (i % 2 == 0 || (r < 0 && errno == ENOSYS))
#endif
		r = syscall(SYS_epoll_pwait, set, &ev, 1, LONG * 1000, i % 3 ? &lets_in : NULL, 8);
	CHECK_EQ(r, 1);
	CHECK_EQ(ev.data.u32, 77);
	CHECK_EQ(close(set), 0);
	(void)t;
}

static void by_mq(int i)
{
	struct timespec t;
	char c[8];

	if (in[i] < 0)
		return; /* there are none here */
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += LONG;
	CHECK_EQ(syscall(SYS_mq_timedreceive, in[i], c, sizeof c, NULL, i % 2 ? &t : NULL), 1);
}

static const struct way {
	void (*open)(int i), (*wait)(int i), (*serve)(int i);
} ways[] = {
	{ open_pipe, by_ppoll, serve_pipe },  { open_pipe, by_pselect, serve_pipe },
		{ open_pipe, by_epoll, serve_pipe },
#ifdef SYS_select
	{ open_pipe, by_select, serve_pipe },
#endif
	{ open_queue, by_mq, serve_queue },
};

static const struct way *way;

static void *waits(void *arg)
{
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	way->wait((int)(intptr_t)arg);
	return NULL;
}

static void served(void)
{
	pthread_t t[THREADS];

	begun = 0;
	for (intptr_t i = 0; i < THREADS; i++) {
		way->open((int)i);
		CHECK_EQ(pthread_create(&t[i], NULL, waits, (void *)i), 0);
	}
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		usleep(1000);
	usleep(3000);
	for (int i = THREADS - 1; i >= 0; i--)
		way->serve(i);
	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		if (in[i] >= 0)
			close(in[i]);
		if (out[i] != in[i])
			close(out[i]);
	}
}

/* ---- time --------------------------------------------------------------------------------- */

static uint64_t first_up, last_up;

static void *naps(void *arg)
{
	struct timespec t = { 0, NAP_NS }, left = { 0, 0 };
	uint64_t start = test_now_ns(), now;
	long r = (intptr_t)arg % 2 ? syscall(SYS_nanosleep, &t, &left) :
				     syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &left);

	CHECK_EQ(r, 0);
	now = test_now_ns();
	CHECK(now - start >= NAP_NS);
	if (!first_up)
		first_up = now;
	last_up = now;
	t.tv_nsec = -1;
	CHECK_EQ(syscall(SYS_nanosleep, &t, &left), -1);
	CHECK_EQ(errno, EINVAL);
	return NULL;
}

/* They sleep all at once, not one after another. */
static void asleep(void)
{
	pthread_t t[4 * THREADS];

	first_up = last_up = 0;
	for (intptr_t i = 0; i < 4 * THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, naps, (void *)i), 0);
	for (int i = 0; i < 4 * THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK(last_up - first_up < 4 * THREADS * (uint64_t)NAP_NS);
}

int main(int argc, char **argv)
{
	(void)argc;
	if (!getenv("KOCHAB_SPARES")) { /* it is read when the process starts */
		setenv("KOCHAB_SPARES", "0", 1);
		execv("/proc/self/exe", argv);
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = &ways[i];
		served();
	}
	asleep();
	return 0;
}
