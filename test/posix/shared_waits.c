/* Process-shared condition variables and barriers among the threads of one process: more waiters
 * than virtual processors, a waiter that is cancelled, a handler while one waits, a mutex that is
 * not the caller's. */
#include "spares.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { WAITERS = 40 };

static pthread_mutex_t m;
static pthread_cond_t c;
static pthread_barrier_t b;
static volatile int waiting, go, woken, cleaned, handled;

static void make(void)
{
	pthread_barrierattr_t ba;
	pthread_mutexattr_t ma;
	pthread_condattr_t ca;

	pthread_mutexattr_init(&ma);
	pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_settype(&ma, PTHREAD_MUTEX_ERRORCHECK);
	CHECK_EQ(pthread_mutex_init(&m, &ma), 0);
	pthread_condattr_init(&ca);
	pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_cond_init(&c, &ca), 0);
	pthread_barrierattr_init(&ba);
	pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED);
	CHECK_EQ(pthread_barrier_init(&b, &ba, WAITERS + 1), 0);
}

static void clean(void *arg)
{
	(void)arg;
	cleaned++;
	CHECK_EQ(pthread_mutex_unlock(&m), 0); /* it is held */
}

static void *wait_for_go(void *arg)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	waiting++;
	pthread_cleanup_push(clean, NULL);
	while (!go)
		CHECK_EQ(pthread_cond_wait(&c, &m), 0);
	woken++;
	pthread_cleanup_pop(0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	return arg;
}

static void *meet(void *arg)
{
	int e = pthread_barrier_wait(&b);

	CHECK(e == 0 || e == PTHREAD_BARRIER_SERIAL_THREAD);
	return arg;
}

static void until_waiting(int n)
{
	for (;;) {
		int seen;

		CHECK_EQ(pthread_mutex_lock(&m), 0);
		seen = waiting;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
		if (seen == n)
			return;
		usleep(1000);
	}
}

static void start(pthread_t *t, int n, void *(*fn)(void *))
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, fn, NULL), 0);
}

static void join(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static void release(void)
{
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	go = 1;
	CHECK_EQ(pthread_cond_broadcast(&c), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void many(void)
{
	pthread_t t[WAITERS];

	go = woken = waiting = 0;
	start(t, WAITERS, wait_for_go);
	until_waiting(WAITERS);
	release();
	join(t, WAITERS);
	CHECK_EQ(woken, WAITERS);
	start(t, WAITERS, meet);
	meet(NULL);
	join(t, WAITERS);
}

/* Every second thread is cancelled, the rest are woken. */
static void cancelled(void)
{
	pthread_t t[WAITERS];
	void *r;

	go = woken = waiting = cleaned = 0;
	start(t, WAITERS, wait_for_go);
	until_waiting(WAITERS);
	for (int i = 0; i < WAITERS; i += 2)
		CHECK_EQ(pthread_cancel(t[i]), 0);
	for (int i = 0; i < WAITERS; i += 2) {
		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK(r == PTHREAD_CANCELED);
	}
	CHECK_EQ(cleaned, WAITERS / 2);
	release();
	for (int i = 1; i < WAITERS; i += 2)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(woken, WAITERS / 2);
}

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t[WAITERS];

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	go = woken = waiting = 0;
	start(t, 1, wait_for_go);
	until_waiting(1);
	CHECK_EQ(pthread_kill(t[0], SIGUSR1), 0);
	while (handled < 1)
		usleep(1000);
	release();
	join(t, 1);
	start(t, WAITERS, meet);
	usleep(20000);
	CHECK_EQ(pthread_kill(t[0], SIGUSR1), 0);
	while (handled < 2)
		usleep(1000);
	meet(NULL);
	join(t, WAITERS);
}

static void not_mine(void)
{
	struct timespec past = { 1, 0 };

	CHECK_EQ(pthread_cond_wait(&c, &m), EPERM);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

int main(int argc, char **argv)
{
	pid_t few = begin_with_few_spares(argv);
	(void)argc;
	make();
	not_mine();
	many();
	not_mine();
	cancelled();
	interrupted();
	CHECK_EQ(pthread_cond_destroy(&c), 0);
	CHECK_EQ(pthread_barrier_destroy(&b), 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
	end_with_few_spares(few);
	return 0;
}
