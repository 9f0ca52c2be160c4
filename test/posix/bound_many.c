/* posix/signal_sent: many threads, each with a kernel thread of its own because of its affinity,
 * wait at a condition variable, and main sends each thread a signal of the same number. Each gets
 * its own signal, with its value. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "bind_self.h"
#include "test.h"

enum { THREADS = 32, TURNS = 60 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t threads[THREADS];
static int values[THREADS];
static atomic_int waiting, got;
static bool go;

static void await_go(void)
{
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&mutex);
	while (!go) {
		struct timespec t = test_in_ms(CLOCK_REALTIME, 10);

		pthread_cond_timedwait(&cond, &mutex, &t);
		sched_yield();
	}
	pthread_mutex_unlock(&mutex);
}

/* arg: the place for its value */
static void *wait_for_signal(void *arg)
{
	const struct timespec limit = { 60, 0 };
	siginfo_t info;
	sigset_t set;

	bind_self();
	await_go();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(sigtimedwait(&set, &info, &limit), SIGUSR1);
	CHECK_EQ(info.si_value.sival_int, *(int *)arg);
	atomic_fetch_add(&got, 1);
	sigpending(&set);
	CHECK_EQ(sigismember(&set, SIGUSR1), 0);
	return NULL;
}

static void take_turn(void)
{
	go = false;
	atomic_store(&waiting, 0);
	atomic_store(&got, 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_signal, &values[i]), 0);
	while (atomic_load(&waiting) < THREADS)
		sched_yield();
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_sigqueue(threads[i], SIGUSR1, (union sigval){ .sival_int = values[i] }),
			0);
	pthread_mutex_lock(&mutex);
	go = true;
	pthread_cond_broadcast(&cond);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(atomic_load(&got), THREADS);
}

int main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < THREADS; i++)
		values[i] = 100 + i;
	for (int i = 0; i < TURNS; i++)
		take_turn();
	return 0;
}
