/* posix/signal_send: a signal to the caller's process group, which only the caller has unblocked:
 * its handler has run when kill or killpg returns, as POSIX requires. A signal that all threads
 * block is seen at once by a thread that asks for pending signals.
 * body: thread (where virtual processors are processes, each of them is in the group) */
#include "crowd.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 300, WAYS = 4 };

static volatile int handled;
static pthread_t taker;

static void handler(int sig)
{
	(void)sig;
	CHECK(pthread_equal(pthread_self(), taker));
	handled++;
}

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static int send_one(int way)
{
	switch (way % WAYS) {
	case 0:
		return kill(0, SIGUSR1);
	case 1:
		return kill(-getpgrp(), SIGUSR1);
	case 2:
		return killpg(getpgrp(), SIGUSR1);
	default:
		return killpg(0, SIGUSR1);
	}
}

static void *take(void *arg)
{
	taker = pthread_self();
	set_mask(SIG_UNBLOCK);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(send_one(i), 0);
		CHECK_EQ(handled, i + 1);
	}
	set_mask(SIG_BLOCK);
	return arg;
}

/* All threads block it. Some threads had it unblocked before, so a thread may still take it from
 * the kernel to look for them. */
static void *wait_none(void *arg)
{
	static const struct timespec none;
	sigset_t set, there;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		if (i % 2)
			CHECK(sigpending(&there) == 0 && sigismember(&there, SIGUSR1) == 1);
		CHECK_EQ(sigtimedwait(&set, NULL, &none), SIGUSR1);
		set_mask(SIG_UNBLOCK);
		set_mask(SIG_BLOCK);
	}
	CHECK_EQ(handled, ROUNDS);
	return arg;
}

static void run(void *(*fn)(void *))
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK(getpgrp() == getpid() || setpgid(0, 0) == 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	set_mask(SIG_BLOCK);
	run(take);
	run(wait_none);
	CHECK_EQ(killpg(-1, SIGUSR1), -1);
	CHECK_EQ(errno, EINVAL);
	return 0;
}
