/* Real-time signals that are queued for the process while every thread blocks them come to waiting
 * threads in the order in which they were sent, the lowest signal number first. No part of the
 * library has taken a signal out of the queue meanwhile.
 * body: thread (there they wait at another process, and may be handed over one by one) */
#define _GNU_SOURCE
#include "crowd.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { NUMBERS = 4, EACH = 10, ROUNDS = 30 };

static void nothing(int sig) { (void)sig; }

static void *comes_and_goes(void *arg) { return arg; }

static void send_all(void)
{
	for (int i = 0; i < EACH; i++)
		for (int k = NUMBERS - 1; k >= 0; k--)
			CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1 + k, (union sigval){ .sival_int = i }), 0);
}

static void take_all(const sigset_t *set)
{
	siginfo_t info;

	for (int k = 0; k < NUMBERS; k++)
		for (int i = 0; i < EACH; i++) {
			CHECK_EQ(sigwaitinfo(set, &info), SIGRTMIN + 1 + k);
			CHECK_EQ(info.si_value.sival_int, i);
			CHECK_EQ(info.si_code, SI_QUEUE);
			CHECK_EQ(info.si_pid, getpid());
		}
}

int main(void)
{
	struct sigaction sa = { .sa_handler = nothing };
	sigset_t set;

	sigemptyset(&set);
	for (int k = 0; k < NUMBERS; k++) {
		CHECK_EQ(sigaction(SIGRTMIN + 1 + k, &sa, NULL), 0);
		sigaddset(&set, SIGRTMIN + 1 + k);
	}
	crowd_run(comes_and_goes, 2);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
		send_all();
		take_all(&set);
		/* somebody lets them through again, for a while */
		CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 0 }), 0);
	}
	return 0;
}
