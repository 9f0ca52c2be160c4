/* Real-time signals that wait for a thread come in the order in which they were sent, each once,
 * also where the thread's time is over while they come, or another signal comes in between: threads
 * that compute and send are beside it. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 20000, EACH = 4, BUSY = 2 };

static volatile int n, wrong;
static atomic_bool over;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	wrong += info->si_value.sival_int != n++;
}

static void between(int sig)
{
	(void)sig;
}

/* To the thread that this is about, and to the process, of which it is the first that is asked. */
static void *sends(void *to)
{
	for (int i = 0; !atomic_load(&over); i++) {
		if (i % 2)
			CHECK_EQ(pthread_kill(*(pthread_t *)to, SIGUSR1), 0);
		else
			CHECK_EQ(kill(getpid(), SIGUSR2), 0);
		usleep(20);
	}
	return NULL;
}

static void *computes(void *arg)
{
	while (!atomic_load(&over))
		;
	return arg;
}

static void one_round(const sigset_t *set)
{
	n = 0;
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, set, NULL), 0);
	for (int i = 0; i < EACH; i++)
		CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN, (union sigval){ .sival_int = i }), 0);
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, set, NULL), 0);
	CHECK_EQ(n, EACH);
	CHECK_EQ(wrong, 0);
}

int main(void)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	struct sigaction other = { .sa_handler = between, .sa_flags = SA_RESTART };
	pthread_t busy[BUSY], sender, self = pthread_self();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	CHECK_EQ(sigaction(SIGRTMIN, &a, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR1, &other, NULL), 0);
	CHECK_EQ(sigaction(SIGUSR2, &other, NULL), 0);
	CHECK_EQ(pthread_create(&sender, NULL, sends, &self), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_create(&busy[i], NULL, computes, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&set);
	atomic_store(&over, true);
	CHECK_EQ(pthread_join(sender, NULL), 0);
	for (int i = 0; i < BUSY; i++)
		CHECK_EQ(pthread_join(busy[i], NULL), 0);
	return 0;
}
