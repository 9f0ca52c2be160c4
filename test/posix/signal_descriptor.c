/* signalfd beside the drop-in: signals that every thread blocks stay in the kernel until a thread
 * reads the descriptor, by read, after poll or epoll_wait, on any virtual processor, with their
 * senders and values; a signal sent to the reading thread is read by it, too. What is read runs no
 * handler.
 * body: thread: signalfd is refused there */
#define _GNU_SOURCE
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { SIGNALS = 20 };

static int handled, taken;

static void handler(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static int descriptor(int sig, int flags)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, sig);
	fd = signalfd(-1, &set, flags | SFD_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

static struct signalfd_siginfo next(int fd)
{
	struct signalfd_siginfo info;

	CHECK_EQ(read(fd, &info, sizeof(info)), sizeof(info));
	return info;
}

static void *reads(void *arg)
{
	int fd = *(int *)arg;

	for (int i = 0; i < SIGNALS; i++) {
		struct signalfd_siginfo info = next(fd);

		CHECK_EQ(info.ssi_signo, SIGRTMIN + 2);
		CHECK_EQ(info.ssi_int, i);
		CHECK_EQ(info.ssi_pid, getpid());
	}
	return NULL;
}

static void *polls(void *arg)
{
	int fd = *(int *)arg, ep = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_EQ(poll(&p, 1, 10000), 1);
	CHECK_EQ(next(fd).ssi_signo, SIGUSR1);
	__atomic_store_n(&taken, 1, __ATOMIC_RELEASE);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e), 0);
	CHECK_EQ(epoll_wait(ep, &e, 1, 10000), 1);
	CHECK_EQ(next(fd).ssi_signo, SIGUSR1);
	close(ep);
	return NULL;
}

static void *computes(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		sched_yield();
	return NULL;
}

/* Sent to the thread that reads, by itself and by pthread_sigqueue. */
static void *own(void *arg)
{
	int fd = descriptor(SIGUSR2, 0);
	union sigval v = { .sival_int = 7 };
	struct signalfd_siginfo info;
	(void)arg;

	CHECK_EQ(pthread_kill(pthread_self(), SIGUSR2), 0);
	CHECK_EQ(next(fd).ssi_signo, SIGUSR2);
	CHECK_EQ(pthread_sigqueue(pthread_self(), SIGUSR2, v), 0);
	info = next(fd);
	CHECK_EQ(info.ssi_signo, SIGUSR2);
	CHECK_EQ(info.ssi_int, 7);
	close(fd);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t reader, poller, computer, self;
	int stop = 0, queued, plain, none;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGRTMIN + 2);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGRTMIN + 2, &sa, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	queued = descriptor(SIGRTMIN + 2, 0);
	plain = descriptor(SIGUSR1, 0);
	none = descriptor(SIGUSR1, SFD_NONBLOCK);
	CHECK_EQ(pthread_create(&computer, NULL, computes, &stop), 0);
	CHECK_EQ(pthread_create(&reader, NULL, reads, &queued), 0);
	CHECK_EQ(pthread_create(&poller, NULL, polls, &plain), 0);
	usleep(10000);
	CHECK(read(none, &sa, sizeof(struct signalfd_siginfo)) == -1 && (errno == EAGAIN || errno == EINVAL));
	for (int i = 0; i < SIGNALS; i++)
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 2, (union sigval){ .sival_int = i }), 0);
	/* two that wait at once would be one */
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	while (!__atomic_load_n(&taken, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(20000);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(pthread_join(reader, NULL), 0);
	CHECK_EQ(pthread_join(poller, NULL), 0);
	stop = 1;
	CHECK_EQ(pthread_join(computer, NULL), 0);
	CHECK_EQ(handled, 0);
	CHECK_EQ(pthread_create(&self, NULL, own, NULL), 0);
	CHECK_EQ(pthread_join(self, NULL), 0);
	CHECK_EQ(handled, 0);
	return 0;
}
