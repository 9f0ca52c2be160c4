/* posix/signal_sent: threads that run for moments are sent a signal while others send themselves the same one all the time,
 * on the same kernel threads: each gets its own. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, RAISERS = 2, ROUNDS = 20000, SECONDS = 20, ENOUGH = 10 /* seconds */ };

static int came[THREADS + RAISERS], over;
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
		sched_yield();
	}
	return arg;
}

/* Its handler has run when raise returns. */
static void *raises(void *arg)
{
	place = (int)(long)arg;
	__atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
	for (int n = 1; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); n++) {
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(came[place], n);
		sched_yield();
	}
	return arg;
}

static void await(int i, int round)
{
	time_t end = time(NULL) + SECONDS;

	while (__atomic_load_n(&came[i], __ATOMIC_RELAXED) < round && time(NULL) < end)
		sched_yield();
	CHECK_EQ(came[i], round);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t id[THREADS + RAISERS];
	time_t end = time(NULL) + ENOUGH;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (long i = 0; i < THREADS + RAISERS; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, i < THREADS ? lives : raises, (void *)i), 0);
	while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < THREADS + RAISERS)
		usleep(100);
	for (int round = 1; round <= ROUNDS && time(NULL) < end; round++) {
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_kill(id[i], SIGUSR1), 0);
		for (int i = 0; i < THREADS; i++)
			await(i, round);
	}
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < THREADS + RAISERS; i++)
		CHECK_EQ(pthread_join(id[i], NULL), 0);
	return 0;
}
