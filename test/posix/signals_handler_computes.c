/* posix/signal_action: a handler that blocks all signals for itself and computes for long is
 * switched away like any code: the kernel does not block the tick for it. The program is shown the
 * mask that it has set. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 4, NAPS = 10, LONG = 20 };

static volatile int over, inside;

static void computes(int sig)
{
	uint64_t end = test_now_ns() + LONG * 1000000000ull;

	(void)sig;
	__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
	while (!over)
		CHECK(test_now_ns() < end);
}

static void *raise_one(void *unused)
{
	CHECK_EQ(raise(SIGUSR1), 0);
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = computes }, is;
	pthread_t t[THREADS];

	sigfillset(&sa.sa_mask);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, raise_one, NULL), 0);
	for (int i = 0; i < NAPS || inside < THREADS; i++)
		usleep(1000);
	over = 1;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, NULL, &is), 0);
	CHECK(sigismember(&is.sa_mask, SIGURG) == 1 && sigismember(&is.sa_mask, SIGUSR2) == 1);
	CHECK(sigismember(&is.sa_mask, SIGKILL) == 0);
	return 0;
}
