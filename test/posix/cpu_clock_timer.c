/* A timer on the CPU clock of the thread that makes it, under either of the clock's names: it
 * expires when that thread has used that much time, and not sooner because other threads
 * compute. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <signal.h>

enum { OTHERS = 7, TIME = 50 * MS };

static int enough, come;
static long rounds; /* rounds that a thread computes alone in that time */

static void handler(int sig)
{
	(void)sig;
	__atomic_store_n(&come, 1, __ATOMIC_RELAXED);
}

static void *computes(void *arg)
{
	while (!__atomic_load_n(&enough, __ATOMIC_RELAXED))
		cpu_compute();
	return arg;
}

static void try_on(clockid_t clock)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec in = { .it_value = { 0, TIME } };
	int64_t begun = cpu_own();
	timer_t timer;
	long n = 0;

	__atomic_store_n(&come, 0, __ATOMIC_RELAXED);
	CHECK_EQ(timer_create(clock, &e, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &in, NULL), 0);
	for (; !__atomic_load_n(&come, __ATOMIC_RELAXED); n++)
		cpu_compute();
	CHECK(cpu_own() - begun >= TIME - TIME / 10);
	CHECK(n >= rounds / 3); /* its processor may be slower while other threads compute */
	CHECK_EQ(timer_delete(timer), 0);
}

static void *times(void *arg)
{
	clockid_t own;

	cpu_own();
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	try_on(CLOCK_THREAD_CPUTIME_ID);
	try_on(own);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	int64_t until = cpu_of(CLOCK_PROCESS_CPUTIME_ID) + TIME;
	pthread_t t[OTHERS + 1];

	for (; cpu_of(CLOCK_PROCESS_CPUTIME_ID) < until; rounds++)
		cpu_compute();
	sigemptyset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	for (int i = 0; i <= OTHERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, i < OTHERS ? computes : times, NULL), 0);
	CHECK_EQ(pthread_join(t[OTHERS], NULL), 0);
	__atomic_store_n(&enough, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < OTHERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
