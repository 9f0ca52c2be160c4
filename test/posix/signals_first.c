/* libc/tcb_donor: the program's first real-time signal, blocked and pending when the first thread
 * is created, stays pending and is taken by a thread that waits for it. This also holds for a
 * signal that comes before a second thread is created. */
#define _GNU_SOURCE
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 20, LONG_S = 60 };

static void *nothing(void *arg)
{
	return arg;
}

static void take(const sigset_t *set)
{
	struct timespec most = { LONG_S, 0 };

	CHECK_EQ(sigtimedwait(set, NULL, &most), SIGRTMIN);
}

int main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(kill(getpid(), SIGRTMIN), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_t t;

		CHECK_EQ(pthread_create(&t, NULL, nothing, NULL), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		take(&set);
		CHECK_EQ(kill(getpid(), SIGRTMIN), 0);
	}
	take(&set);
	return 0;
}
