/* kill() of the own process, with a handler, by a thread that blocks the signal: the only thread
 * that has it unblocked has received it when kill returns, as in the kernel. That thread may wait
 * or be about to wait, and ends as soon as it goes on: the handler has run by then. More threads
 * start and end meanwhile. */
#include "crowd.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { ROUNDS = 300, BYSTANDERS = 4 };

static sem_t ready, go;
static volatile int handled, stop;
static pthread_t taker;

static void handler(int sig)
{
	(void)sig;
	CHECK(pthread_equal(pthread_self(), taker));
	handled++;
}

static void *take(void *waits)
{
	sigset_t set;

	taker = pthread_self();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_EQ(sem_post(&ready), 0);
	while (sem_wait(&go))
		CHECK_EQ(errno, EINTR);
	return waits;
}

static void *pass_by(void *arg)
{
	while (!stop)
		sched_yield();
	return arg;
}

int main(void)
{
	pthread_t t, bystanders[BYSTANDERS];
	struct sigaction sa = { .sa_handler = handler };
	sigset_t set;

	CHECK_EQ(sem_init(&ready, 0, 0), 0);
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	for (long i = 0; i < BYSTANDERS; i++)
		CHECK_EQ(pthread_create(&bystanders[i], NULL, pass_by, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_create(&t, NULL, take, NULL), 0);
		CHECK_EQ(sem_wait(&ready), 0);
		if (i % 2)
			usleep(50);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		CHECK_EQ(sem_post(&go), 0);
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(handled, i + 1);
	}
	stop = 1;
	for (int i = 0; i < BYSTANDERS; i++)
		CHECK_EQ(pthread_join(bystanders[i], NULL), 0);
	return 0;
}
