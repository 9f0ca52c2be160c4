/* posix/signal_settle: kill() of the own process while the only thread that has the signal
 * unblocked runs its handler. As in the kernel the signal comes when that handler returns, before
 * the thread does anything else: before it ends, blocks the signal or looks for pending signals. */
#include "crowd.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 300, WAYS = 3 };

static sem_t inside;
static volatile int handled, sent;

/* The first handler of a round works until the second signal has been sent. */
static void handler(int sig)
{
	(void)sig;
	if (handled++ % 2)
		return;
	CHECK_EQ(sem_post(&inside), 0);
	while (!sent)
		;
}

static void set_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static void *take(void *way)
{
	int before = handled;

	set_mask(SIG_UNBLOCK);
	while (handled == before)
		sched_yield();
	switch ((long)way) {
	case 0:
		break;
	case 1:
		set_mask(SIG_BLOCK);
		CHECK_EQ(handled, before + 2);
		break;
	default:
		pthread_exit(NULL);
	}
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };

	CHECK_EQ(sem_init(&inside, 0, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	set_mask(SIG_BLOCK);
	for (long i = 0; i < ROUNDS; i++) {
		pthread_t t;

		sent = 0;
		CHECK_EQ(pthread_create(&t, NULL, take, (void *)(i % WAYS)), 0);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(sem_wait(&inside), 0);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		sent = 1;
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(handled, 2 * (i + 1));
	}
	return 0;
}
