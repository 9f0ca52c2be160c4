/* Signals to the process in a loop, while threads with the smallest stack are made, post, and end:
 * however many come at once they pile up no frames there, and no call of the runtime's ends by
 * them. */
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

static sem_t there;
static volatile int stop;
static volatile unsigned handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *sends(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	while (!stop)
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	return arg;
}

static void *posts(void *arg)
{
	CHECK_EQ(sem_post(&there), 0);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	uint64_t end = test_now_ns() + 500000000u;
	pthread_t sender, t;
	pthread_attr_t a;

	CHECK_EQ(sem_init(&there, 0, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_attr_init(&a), 0);
	CHECK_EQ(pthread_attr_setstacksize(&a, (size_t)sysconf(_SC_THREAD_STACK_MIN)), 0);
	CHECK_EQ(pthread_create(&sender, NULL, sends, NULL), 0);
	while (test_now_ns() < end || !handled) {
		CHECK_EQ(pthread_create(&t, &a, posts, NULL), 0);
		while (sem_wait(&there))
			CHECK_EQ(errno, EINTR);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	stop = 1;
	CHECK_EQ(pthread_join(sender, NULL), 0);
	CHECK(handled > 0);
	return 0;
}
