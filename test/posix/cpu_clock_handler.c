/* clock_gettime of the CPU clock in a signal handler, which may have interrupted anything,
 * including a switch: the clock is the thread's, and does not go back, neither in the handler nor
 * after it. */
#define _GNU_SOURCE
#include "cpu_time.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

enum { N = 4, ROUNDS = 600 };

static __thread volatile int64_t last;
static int handled;

static void handler(int sig)
{
	int64_t now = cpu_own();

	(void)sig;
	CHECK(now >= last);
	last = now;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *works(void *arg)
{
	for (int i = 0; i < ROUNDS || __atomic_load_n(&handled, __ATOMIC_RELAXED) < 40; i++) {
		int64_t before = last, now;

		for (int k = 0; k < 50; k++)
			sched_yield();
		cpu_compute();
		now = cpu_own();
		CHECK(now >= before);
		if (now > last)
			last = now;
	}
	*(int64_t *)arg = cpu_own();
	return NULL;
}

int main(void)
{
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, none;
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	uint64_t since = test_now_ns();
	int64_t used[N], sum = 0;
	pthread_t t[N];

	sigemptyset(&sa.sa_mask);
	sigaction(SIGALRM, &sa, NULL);
	cpu_own();
	for (int i = 0; i < N; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, works, &used[i]), 0);
	setitimer(ITIMER_REAL, &each, NULL);
	for (int i = 0; i < N; i++) {
		CHECK_EQ(pthread_join(t[i], NULL), 0);
		sum += used[i];
	}
	memset(&none, 0, sizeof none);
	setitimer(ITIMER_REAL, &none, NULL);
	CHECK(sum <= cpu_had(since) + cpu_had(since) / 20);
	return 0;
}
