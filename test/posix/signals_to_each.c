/* posix/signal_sent: many threads, which run for moments and sleep, are sent the same signal one after the other, as by a
 * collector that stops the world: each gets its own, also where several come to one virtual processor at once. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { THREADS = 24, ROUNDS = 300, SECONDS = 20 };

static int came[THREADS], over;
static __thread volatile int place = -1;
static int ready;

static void handler(int sig)
{
	(void)sig;
	CHECK(place >= 0);
	__atomic_add_fetch(&came[place], 1, __ATOMIC_RELAXED);
}

static void *lives(void *arg)
{
	place = (int)(long)arg;
	__atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		if (place % 3 == 0)
			sched_yield();
		usleep(20 + 10 * (unsigned)place);
	}
	return arg;
}

static void await(int i, int round)
{
	for (int t = 0; t < SECONDS * 10000 && __atomic_load_n(&came[i], __ATOMIC_RELAXED) < round; t++)
		usleep(100);
	CHECK_EQ(came[i], round);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t id[THREADS];

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, lives, (void *)i), 0);
	while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < THREADS)
		usleep(100);
	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_kill(id[i], SIGUSR1), 0);
		for (int i = 0; i < THREADS; i++)
			await(i, round);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	return 0;
}
