/* posix/signals_own_call: a signal that the kernel sends a thread for its own write stays pending
 * for this thread while it blocks the signal. Threads that have the signal unblocked do not get it,
 * and it does not end the program. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test.h"

enum { OTHERS = 4, TURNS = 20, WAYS = 8 };

static atomic_int came;
static pthread_t taker;
static sem_t go, gone;

static void handler(int sig)
{
	(void)sig;
	taker = pthread_self();
	came++;
}

/* They let everything through. */
static void *lets_in(void *arg)
{
	for (;;) {
		sem_wait(&go);
		sched_yield();
		sem_post(&gone);
	}
	return arg;
}

/* The remaining threads have turns, on any virtual processor. */
static void others_run(void)
{
	for (int i = 0; i < TURNS * OTHERS; i++) {
		sem_post(&go);
		sem_wait(&gone);
	}
}

/* Returns an end of a pipe or of a connection without a peer. */
static int broken(bool is_socket)
{
	int p[2];

	if (is_socket)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	else
		CHECK_EQ(pipe(p), 0);
	close(p[0]);
	return p[1];
}

static void *closes(void *fd)
{
	usleep(20000);
	close((int)(intptr_t)fd);
	return NULL;
}

/* The reader goes while it waits for room. */
static long writes_and_waits(void)
{
	static char much[1 << 20];
	int p[2], e;
	pthread_t t;
	long r;

	CHECK_EQ(pipe(p), 0);
	CHECK_EQ(pthread_create(&t, NULL, closes, (void *)(intptr_t)p[0]), 0);
	do
		r = write(p[1], much, sizeof(much));
	while (r > 0);
	e = errno;
	CHECK_EQ(pthread_join(t, NULL), 0);
	close(p[1]);
	errno = e;
	return r;
}

static long breaks(int way)
{
	char c[2] = { 0 };
	struct iovec v[2] = { { c, 1 }, { c + 1, 1 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	struct mmsghdr mm = { .msg_hdr = m };
	int fd = broken(way < 4), e;
	long r = -1;

	switch (way) {
	case 0: r = send(fd, c, 1, 0); break;
	case 1: r = sendmsg(fd, &m, 0); break;
	case 2: r = sendmmsg(fd, &mm, 1, 0); break;
	case 3: r = write(fd, c, 1); break;
	case 4: r = write(fd, c, 1); break;
	case 5: r = writev(fd, v, 2); break;
	case 6: r = syscall(SYS_write, fd, c, (size_t)1); break;
	default: r = writes_and_waits(); break;
	}
	e = errno;
	close(fd);
	errno = e;
	return r;
}

static void lets_through(int sig, bool through)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(pthread_sigmask(through ? SIG_UNBLOCK : SIG_BLOCK, &set, NULL), 0);
}

static bool waits(int sig)
{
	sigset_t set;

	CHECK_EQ(sigpending(&set), 0);
	return sigismember(&set, sig);
}

static void is_ours_later(int sig)
{
	others_run();
	CHECK_EQ(came, 0);
	CHECK(waits(sig));
	lets_through(sig, true);
	CHECK_EQ(came, 1);
	CHECK(pthread_equal(taker, pthread_self()));
	CHECK(!waits(sig));
	lets_through(sig, false);
	came = 0;
}

static void is_taken(int sig)
{
	sigset_t set;
	siginfo_t info;
	const struct timespec none = { 0, 0 };

	others_run();
	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_EQ(sigtimedwait(&set, &info, &none), sig);
	CHECK_EQ(sigtimedwait(&set, &info, &none), -1);
	CHECK_EQ(came, 0);
}

static void *writes(void *arg)
{
	struct rlimit limit, before;
	char name[] = "/tmp/kochab-XXXXXX";
	int fd;

	lets_through(SIGPIPE, false);
	lets_through(SIGXFSZ, false);
	for (int way = 0; way < WAYS; way++) {
		CHECK_EQ(breaks(way), -1);
		CHECK_EQ(errno, EPIPE);
		is_ours_later(SIGPIPE);
		CHECK_EQ(breaks(way), -1);
		is_taken(SIGPIPE);
	}
	fd = mkstemp(name);
	CHECK(fd >= 0);
	unlink(name);
	CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 4096;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	CHECK_EQ(lseek(fd, 4096, SEEK_SET), 4096);
	CHECK_EQ(write(fd, "x", 1), -1);
	CHECK_EQ(errno, EFBIG);
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
	is_ours_later(SIGXFSZ);
	return arg;
}

/* By stdio, and by a call that libc makes. */
static void *writes_by_libc(void *arg)
{
	int fd = broken(false);
	FILE *f = fdopen(fd, "w");

	lets_through(SIGPIPE, false);
	for (int i = 0; i < 10; i++) {
		CHECK(fputs("x", f) >= 0);
		CHECK_EQ(fflush(f), EOF);
		others_run();
		CHECK(dprintf(fd, "x") < 0);
		others_run();
		CHECK_EQ(came, 0);
	}
	fclose(f);
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK(signal(SIGPIPE, handler) != SIG_ERR);
	CHECK(signal(SIGXFSZ, handler) != SIG_ERR);
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(sem_init(&gone, 0, 0), 0);
	for (int i = 0; i < OTHERS; i++) {
		CHECK_EQ(pthread_create(&t, NULL, lets_in, NULL), 0);
		pthread_detach(t);
	}
	CHECK_EQ(pthread_create(&t, NULL, writes, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, writes_by_libc, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	others_run();
	CHECK_EQ(came, 0);
}
