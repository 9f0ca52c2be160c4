/* posix/signal_kinds - a signal to a thread and a signal of its number to the process are two, even
 * while both wait for one thread. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 200 };

static _Atomic int taken, over;
static sem_t ready, go;

static void take(int sig)
{
	(void)sig;
	taken++;
}

static void *wait_with_open_mask(void *arg)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_EQ(sem_post(&ready), 0);
	while (!over)
		sem_wait(&go);
	return arg;
}

static void await_count(int n)
{
	static const struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 10000 && taken < n; i++)
		nanosleep(&ms, NULL);
	CHECK_EQ(taken, n);
}

int main(void)
{
	struct sigaction action = { .sa_handler = take };
	sigset_t set;
	pthread_t thread;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_EQ(sem_init(&ready, 0, 0), 0);
	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(pthread_create(&thread, NULL, wait_with_open_mask, NULL), 0);
	CHECK_EQ(sem_wait(&ready), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		CHECK_EQ(pthread_kill(thread, SIGUSR1), 0);
		CHECK_EQ(kill(getpid(), SIGUSR1), 0);
		await_count(2 * i);
	}
	over = 1;
	CHECK_EQ(sem_post(&go), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	return 0;
}
