/* Calls that the kernel does not restart after a handler. The runtime's tick, which comes while
 * work waits behind the caller, does not end them; a signal of the program does. sigsuspend and
 * pause wait for the program's signal.
 * sleeps: yes */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <unistd.h>

enum { MS = 150, KINDS = 9 };

static int handled, ran, returned;
static int pipe_ends[2], epoll, sems, queue;

static void handler(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 10; i++)
		sched_yield();
	__atomic_add_fetch(&ran, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Makes a blocking call, of MS or without end; 0: its time is over. */
static int wait_by(int kind, bool for_ever)
{
	struct timespec ts = { 0, MS * 1000000L }, *t = for_ever ? NULL : &ts;
	struct timeval tv = { 0, MS * 1000L };
	struct pollfd p = { pipe_ends[0], POLLIN, 0 };
	struct sembuf take = { 0, -1, 0 };
	struct epoll_event ev;
	struct { long type; char text[8]; } message;
	sigset_t none;
	int ms = for_ever ? -1 : MS;
	fd_set in;

	sigemptyset(&none);
	FD_ZERO(&in);
	FD_SET(pipe_ends[0], &in);
	switch (kind) {
	case 0: return poll(&p, 1, ms);
	case 1: return ppoll(&p, 1, t, NULL);
	case 2: return ppoll(&p, 1, t, &none);
	case 3: return select(pipe_ends[0] + 1, &in, NULL, NULL, for_ever ? NULL : &tv);
	case 4: return pselect(pipe_ends[0] + 1, &in, NULL, NULL, t, &none);
	case 5: return epoll_wait(epoll, &ev, 1, ms);
	case 6: return epoll_pwait(epoll, &ev, 1, ms, &none);
	case 7: return semtimedop(sems, &take, 1, t) == -1 && errno == EAGAIN ? 0 : -1;
	default:
		if (!for_ever)
			return poll(NULL, 0, ms);
		return (int)msgrcv(queue, &message, sizeof message.text, 1, 0);
	}
}

/* Threads that were made just before wait behind the caller, or behind its VP. */
static void not_by_tick(int kind)
{
	pthread_t t[8];
	uint64_t start;
	int r;

	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, NULL), 0);
	start = test_now_ns();
	r = wait_by(kind, false);
	if (r)
		fprintf(stderr, "kind %d: %d, %s\n", kind, r, strerror(errno));
	CHECK_EQ(r, 0);
	CHECK(test_now_ns() - start >= MS * 1000000ull - 2000000);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void *interrupts(void *arg)
{
	pthread_t target = *(pthread_t *)arg;

	usleep(50000);
	/* again, if the signal came before the call */
	while (!__atomic_load_n(&returned, __ATOMIC_RELAXED)) {
		pthread_kill(target, SIGUSR1);
		usleep(30000);
	}
	return NULL;
}

static void by_signal(int kind)
{
	pthread_t self = pthread_self(), t;

	returned = 0;
	CHECK_EQ(pthread_create(&t, NULL, interrupts, &self), 0);
	CHECK_EQ(wait_by(kind, true), -1);
	CHECK_EQ(errno, EINTR);
	__atomic_store_n(&returned, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *kills(void *arg)
{
	usleep(2000);
	CHECK_EQ(arg ? pthread_kill(*(pthread_t *)arg, SIGUSR2) : kill(getpid(), SIGUSR2), 0);
	return NULL;
}

/* SIGUSR2 is blocked, as sigsuspend needs it; a signal that is ignored does not end the call. */
static void suspends(bool to_thread)
{
	pthread_t self = pthread_self(), t, w[4];
	sigset_t without, now;

	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &without), 0);
	sigdelset(&without, SIGUSR2);
	for (int i = 0; i < 30; i++) {
		int before = handled;

		for (int k = 0; k < 4; k++)
			CHECK_EQ(pthread_create(&w[k], NULL, work, NULL), 0);
		CHECK_EQ(pthread_create(&t, NULL, kills, to_thread ? &self : NULL), 0);
		CHECK_EQ(kill(getpid(), SIGWINCH), 0);
		CHECK_EQ(sigsuspend(&without), -1);
		CHECK_EQ(errno, EINTR);
		CHECK_EQ(handled, before + 1);
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
		CHECK(sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1));
		CHECK_EQ(pthread_join(t, NULL), 0);
		for (int k = 0; k < 4; k++)
			CHECK_EQ(pthread_join(w[k], NULL), 0);
	}
}

static void pauses(void)
{
	pthread_t self = pthread_self(), t;

	returned = 0;
	CHECK_EQ(pthread_create(&t, NULL, interrupts, &self), 0);
	CHECK_EQ(pause(), -1);
	CHECK_EQ(errno, EINTR);
	__atomic_store_n(&returned, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	struct epoll_event ev = { .events = EPOLLIN };
	const char *vps = getenv("KOCHAB_VPS");
	/* no thread could send a signal while the caller blocks the only VP */
	bool alone = vps && strcmp(vps, "1") == 0;
	sigset_t set;

	/* before there are other threads, which inherit the mask: so no other thread takes the
	 * signal */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &sa, NULL), 0);
	CHECK_EQ(pipe(pipe_ends), 0);
	epoll = epoll_create1(0);
	CHECK(epoll >= 0);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &ev), 0);
	sems = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(sems >= 0 && queue >= 0);
	for (int kind = 0; kind < KINDS; kind++) {
		not_by_tick(kind);
		if (!alone)
			by_signal(kind);
	}
	CHECK_EQ(semctl(sems, 0, IPC_RMID), 0);
	CHECK_EQ(msgctl(queue, IPC_RMID, NULL), 0);
	suspends(false);
	suspends(true);
	pauses();
	return 0;
}
