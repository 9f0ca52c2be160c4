/* A program that blocks every signal before its first thread, as many programs do to leave signals
 * to a single thread, is preempted all the same: the runtime's tick comes to main's kernel thread,
 * too. */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { BUSY = 3 };

static atomic_int stop;

static void *busy(void *arg)
{
	while (!stop)
		;
	return arg;
}

static void *stops(void *arg)
{
	stop = 1;
	return arg;
}

int main(void)
{
	pthread_t t[BUSY + 1];
	sigset_t all, now;

	sigfillset(&all);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	for (int i = 0; i <= BUSY; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i < BUSY ? busy : stops, NULL), 0);
	for (int i = 0; i <= BUSY; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	CHECK_EQ(sigismember(&now, SIGURG), 1);
	return 0;
}
