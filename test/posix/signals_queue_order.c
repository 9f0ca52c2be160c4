/* Real-time signals that were queued for the process while no thread let them through: a thread
 * that lets them through has each of them once, the lower number first and each number's in the
 * order in which they were sent, beside threads that compute and block all.
 * body: thread (where virtual processors are processes one overtakes another now and then: doc/posix.md) */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { EACH = 3, MOST = 200, ROUNDS = 8, THREADS = 2 };

static int n, number[MOST], value[MOST], closed, over;
static sigset_t all;

static void note(int sig, siginfo_t *info, void *unused)
{
	(void)unused;
	if (n < MOST) {
		number[n] = sig;
		value[n] = info->si_value.sival_int;
	}
	n++;
}

static void *computes(void *unused)
{
	sigset_t every;

	sigfillset(&every);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &every, NULL), 0);
	__atomic_add_fetch(&closed, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		;
	return unused;
}

static void check_order(void)
{
	int want = 0;

	CHECK_EQ(n, EACH * (SIGRTMAX - SIGRTMIN + 1));
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++)
		for (int k = 0; k < EACH; k++, want++) {
			CHECK_EQ(number[want], sig);
			CHECK_EQ(value[want], k);
		}
}

static void *takes(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		n = 0;
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
		for (int k = 0; k < EACH; k++)
			for (int sig = SIGRTMAX; sig >= SIGRTMIN; sig--)
				CHECK_EQ(sigqueue(getpid(), sig, (union sigval){ .sival_int = k }), 0);
		if (i % 2)
			usleep(2000);
		CHECK_EQ(n, 0);
		CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &all, NULL), 0);
		for (int k = 0; k < 2000 && __atomic_load_n(&n, __ATOMIC_RELAXED) < EACH * (SIGRTMAX - SIGRTMIN + 1); k++)
			usleep(1000);
		check_order();
	}
	return unused;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	pthread_t t, other[THREADS];

	sigfillset(&sa.sa_mask);
	sigemptyset(&all);
	for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
		sigaddset(&all, sig);
		CHECK_EQ(sigaction(sig, &sa, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&other[i], NULL, computes, NULL), 0);
	while (__atomic_load_n(&closed, __ATOMIC_ACQUIRE) < THREADS)
		usleep(1000);
	CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, takes, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(other[i], NULL), 0);
	return 0;
}
