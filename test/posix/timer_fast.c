/* posix/signal_overrun, signal_pool: signals of a timer that expires faster than its handler is
 * called do not pile up: each expiration is a call or an overrun, and few signals wait. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { PERIOD_NS = 20000, RUN_NS = 150000000, MOST_WAITING = 2000 };

static long counted;
static long began;
static int over;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code == SI_TIMER)
		__atomic_add_fetch(&counted, 1 + info->si_overrun, __ATOMIC_RELAXED);
}

static long now_ns(void)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t), 0);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

/* Of the whole user. */
static long waiting(void)
{
	char line[256];
	long n = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f != NULL);
	while (n < 0 && fgets(line, sizeof line, f))
		sscanf(line, "SigQ: %ld", &n);
	fclose(f);
	CHECK(n >= 0);
	return n;
}

static void *other(void *unused)
{
	struct timespec nap = { 0, 1000000 };

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
		nanosleep(&nap, NULL);
	return unused;
}

static void spend(int sig, bool asleep, bool blocked)
{
	struct timespec nap = { 0, 2000000 };
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };
	struct itimerspec set = { { 0, PERIOD_NS }, { 0, PERIOD_NS } }, off = { { 0, 0 }, { 0, 0 } };
	long from, before = __atomic_load_n(&counted, __ATOMIC_RELAXED), were = waiting(), n;
	sigset_t one, old;
	timer_t id;

	sigemptyset(&one);
	sigaddset(&one, sig);
	if (blocked)
		CHECK_EQ(pthread_sigmask(SIG_BLOCK, &one, &old), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &e, &id), 0);
	from = now_ns();
	CHECK_EQ(timer_settime(id, 0, &set, NULL), 0);
	while (now_ns() - from < RUN_NS)
		if (asleep)
			nanosleep(&nap, NULL);
	CHECK(waiting() - were < MOST_WAITING);
	if (blocked)
		CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
	CHECK_EQ(timer_settime(id, 0, &off, NULL), 0);
	/* some may be in the handler's hands, or be dropped with the timer */
	for (int i = 0; i < 500; i++) {
		n = __atomic_load_n(&counted, __ATOMIC_RELAXED) - before;
		if (n >= RUN_NS / PERIOD_NS / 2)
			break;
		nanosleep(&nap, NULL);
	}
	CHECK(n >= RUN_NS / PERIOD_NS / 2);
	/* a late notification may be of the timer before */
	CHECK(__atomic_load_n(&counted, __ATOMIC_RELAXED) <= (now_ns() - began) / PERIOD_NS + 100);
	CHECK_EQ(timer_delete(id), 0);
}

int main(void)
{
	const int sigs[] = { SIGRTMIN, SIGUSR1 };
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t t;

	began = now_ns();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sigaction(sigs[i], &sa, NULL), 0);
	CHECK_EQ(pthread_create(&t, NULL, other, NULL), 0);
	for (int i = 0; i < 2; i++) {
		spend(sigs[i], false, false);
		spend(sigs[i], true, false);
		spend(sigs[i], false, true);
		spend(sigs[i], true, true);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	CHECK_EQ(pthread_join(t, NULL), 0);
	return 0;
}
