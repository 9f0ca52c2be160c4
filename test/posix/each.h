/* test/posix/each.h - threads that each count the signals which their handler gets. EACH, defined
 * by the test: their number. */
#ifndef TEST_EACH_H
#define TEST_EACH_H

#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_t each[EACH];
static int came[EACH], each_over, each_ready;
static __thread volatile int place = -1;

static void counts(int sig)
{
	(void)sig;
	CHECK(place >= 0);
	__atomic_add_fetch(&came[place], 1, __ATOMIC_RELAXED);
}

/* A thread's first step. */
static inline void takes_place(void *arg)
{
	place = (int)(long)arg;
	__atomic_add_fetch(&each_ready, 1, __ATOMIC_RELEASE);
}

static inline bool is_over(void)
{
	return __atomic_load_n(&each_over, __ATOMIC_ACQUIRE);
}

static inline int has_come(int i)
{
	return __atomic_load_n(&came[i], __ATOMIC_RELAXED);
}

/* Starts the threads; SIGUSR1 is counted; threads 0 to n - 1 run `first`, the rest `second`. */
static inline void each_begins(int n, void *(*first)(void *), void *(*second)(void *))
{
	struct sigaction sa = { .sa_handler = counts, .sa_flags = SA_RESTART };

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	for (long i = 0; i < EACH; i++)
		CHECK_EQ(pthread_create(&each[i], NULL, i < n ? first : second, (void *)i), 0);
	while (__atomic_load_n(&each_ready, __ATOMIC_ACQUIRE) < EACH)
		usleep(100);
}

/* Sends SIGUSR1 to threads 0 to n - 1; each has handled it, its `round`th, before this returns. */
static inline void each_is_sent(int n, int round, void (*await)(int i, int round))
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_kill(each[i], SIGUSR1), 0);
	for (int i = 0; i < n; i++)
		await(i, round);
}

static inline void each_ends(void)
{
	__atomic_store_n(&each_over, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < EACH; i++)
		CHECK_EQ(pthread_join(each[i], NULL), 0);
}

#endif
