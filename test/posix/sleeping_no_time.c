/* posix/sleeping_no_time: a thread that sleeps for no time lets the ready threads of its processor
 * run, with every function that sleeps. Programs wait in this way for the work of a second thread.
 * matrix: run-only vps=1 sched=rotator,lb2,steal
 * body: thread */
#include <pthread.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { WAYS = 4, CALLS = 100 }; /* so many take far less than a quantum */

static volatile int came;

static void *comes(void *arg)
{
	came = 1;
	return arg;
}

static int no_time(int way)
{
	const struct timespec none = { 0, 0 };

	switch (way) {
	case 0:
		return nanosleep(&none, NULL);
	case 1:
		return usleep(0);
	case 2:
		return clock_nanosleep(CLOCK_MONOTONIC, 0, &none, NULL);
	default:
		return thrd_sleep(&none, NULL);
	}
}

int main(void)
{
	pthread_t t;

	for (int way = 0; way < WAYS; way++) {
		came = 0;
		CHECK_EQ(pthread_create(&t, NULL, comes, NULL), 0);
		for (int i = 0; i < CALLS; i++)
			CHECK_EQ(no_time(way), 0);
		CHECK_EQ(came, 1);
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
}
