/* More threads than virtual processors wait for pipes in poll, epoll_wait, select and ppoll: all
 * are woken by a thread that writes; time limits hold; a handler ends the wait with EINTR;
 * cancellation ends it. */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

enum { THREADS = 12, ROUNDS = 20, WAYS = 4 };

static int there[THREADS][2], back[THREADS][2], handled, begun;

static int by_poll(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };
	int r = poll(&p, 1, ms);

	CHECK(r <= 0 || p.revents == POLLIN);
	return r;
}

static int by_epoll(int fd, int ms)
{
	struct epoll_event e = { EPOLLIN, { .fd = fd } };
	int set = epoll_create1(0), r;

	CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e), 0);
	e.data.fd = -1;
	r = epoll_wait(set, &e, 1, ms);
	CHECK(r <= 0 || e.data.fd == fd);
	close(set);
	return r;
}

static int by_select(int fd, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	fd_set in;
	int r;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	r = select(fd + 1, &in, NULL, NULL, ms < 0 ? NULL : &t);
	CHECK(r < 0 || FD_ISSET(fd, &in) == r);
	CHECK(r != 0 || (t.tv_sec == 0 && t.tv_usec == 0));
	return r;
}

static int by_ppoll(int fd, int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	struct pollfd p = { fd, POLLIN, 0 };

	return ppoll(&p, 1, ms < 0 ? NULL : &t, NULL);
}

static int (*const way[WAYS])(int, int) = { by_poll, by_epoll, by_select, by_ppoll };

static void *answer(void *arg)
{
	long me = (long)arg;
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(way[me % WAYS](there[me][0], me % 3 ? -1 : 60000), 1);
		CHECK_EQ(read(there[me][0], &c, 1), 1);
		CHECK_EQ(write(back[me][1], &c, 1), 1);
	}
	return NULL;
}

static void everybody(void)
{
	pthread_t t[THREADS];
	char c = 'x';

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, answer, (void *)i), 0);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = THREADS - 1; i >= 0; i--)
			CHECK_EQ(write(there[i][1], &c, 1), 1);
		for (int i = 0; i < THREADS; i++) {
			CHECK_EQ(way[r % WAYS](back[i][0], -1), 1);
			CHECK_EQ(read(back[i][0], &c, 1), 1);
		}
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *time_out(void *arg)
{
	long me = (long)arg;
	uint64_t start = test_now_ns();

	CHECK_EQ(way[me % WAYS](there[me][0], 0), 0);
	CHECK_EQ(way[me % WAYS](there[me][0], 30), 0);
	CHECK(test_now_ns() - start >= 29000000);
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *interrupted(void *arg)
{
	long me = (long)arg;

	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	CHECK_EQ(way[me % WAYS](there[me][0], -1), -1);
	CHECK_EQ(errno, EINTR);
	return NULL;
}

static void *cancelled(void *arg)
{
	long me = (long)arg;

	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
	way[me % WAYS](there[me][0], -1);
	return NULL;
}

static void crowd(void *(*body)(void *), int (*end)(pthread_t), void *result)
{
	pthread_t t[THREADS];
	void *value;

	begun = 0;
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, body, (void *)i), 0);
	while (end && __atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		usleep(1000);
	usleep(30000);
	for (int i = 0; i < THREADS; i++) {
		if (end)
			CHECK_EQ(end(t[i]), 0);
		CHECK_EQ(pthread_join(t[i], &value), 0);
		CHECK(value == result);
	}
}

static int signal_it(pthread_t t)
{
	return pthread_kill(t, SIGUSR1);
}

int main(void)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	for (int i = 0; i < THREADS; i++) {
		CHECK_EQ(pipe(there[i]), 0);
		CHECK_EQ(pipe(back[i]), 0);
	}
	CHECK_EQ(sigaction(SIGUSR1, &a, NULL), 0);
	everybody();
	crowd(time_out, NULL, NULL);
	crowd(interrupted, signal_it, NULL);
	CHECK_EQ(handled, THREADS);
	crowd(cancelled, pthread_cancel, PTHREAD_CANCELED);
	everybody();
	return 0;
}
