/* Signals that main blocks and is sent before the first thread is created stay pending: main's for
 * main, the process's for the process. A signal sent to main is not pending for a new thread. Each
 * signal comes when it is unblocked, with its siginfo. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "test.h"

enum { OWN = 3 }; /* real-time signals sent to main */

static int got[65], values[OWN], n_values;
static pthread_t by[65];

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	got[sig]++;
	by[sig] = pthread_self();
	if (sig == SIGRTMIN && n_values < OWN)
		values[n_values++] = info->si_value.sival_int;
}

static void *looks(void *seen)
{
	CHECK_EQ(sigpending(seen), 0);
	return NULL;
}

int main(void)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	const int sigs[] = { SIGUSR1, SIGUSR2, SIGRTMIN };
	sigset_t set, seen;
	pthread_t t;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, sigs[i]);
	CHECK_EQ(pthread_sigmask(SIG_SETMASK, &set, NULL), 0);
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(kill(getpid(), SIGUSR2), 0);
	for (int i = 0; i < OWN; i++)
		CHECK_EQ(pthread_sigqueue(pthread_self(), SIGRTMIN, (union sigval){ .sival_int = i + 1 }), 0);
	CHECK_EQ(pthread_create(&t, NULL, looks, &seen), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(!sigismember(&seen, SIGUSR1));
	CHECK(sigismember(&seen, SIGUSR2));
	CHECK(!sigismember(&seen, SIGRTMIN));
	CHECK_EQ(sigpending(&seen), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(sigismember(&seen, sigs[i]));
		CHECK_EQ(sigaction(sigs[i], &a, NULL), 0);
	}
	CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	for (int i = 0; i < 3000 && !got[SIGUSR2]; i++)
		usleep(1000);
	CHECK_EQ(got[SIGUSR1], 1);
	CHECK_EQ(got[SIGUSR2], 1);
	CHECK_EQ(got[SIGRTMIN], OWN);
	CHECK(pthread_equal(by[SIGUSR1], pthread_self()));
	for (int i = 0; i < OWN; i++)
		CHECK_EQ(values[i], i + 1);
	return 0;
}
