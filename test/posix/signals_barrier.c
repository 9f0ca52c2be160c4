/* A handler that runs during pthread_barrier_wait and pthread_rwlock_timedrdlock does not give up the thread's place:
 * the others pass the barrier while it sleeps, and a lock that is freed meanwhile is the thread's, though its time has
 * passed when the handler returns. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static pthread_barrier_t b;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static volatile int in_handler, release, ready;

static void handler(int sig)
{
	(void)sig;
	in_handler = 1;
	while (!release)
		usleep(1000);
}

static void *at_barrier(void *arg)
{
	int r;

	ready = 1;
	r = pthread_barrier_wait(&b);
	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
	return arg;
}

static void *reading(void *arg)
{
	struct timespec t = test_in_ms(CLOCK_REALTIME, 100);

	ready = 1;
	CHECK_EQ(pthread_rwlock_timedrdlock(&l, &t), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	return arg;
}

static pthread_t in_wait(void *(*fn)(void *))
{
	pthread_t t;

	ready = in_handler = release = 0;
	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	while (!ready)
		sched_yield();
	usleep(10000);
	CHECK_EQ(pthread_kill(t, SIGUSR1), 0);
	while (!in_handler)
		sched_yield();
	return t;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t t;

	CHECK_EQ(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_EQ(pthread_barrier_init(&b, NULL, 2), 0);
	for (int i = 0; i < 3; i++) {
		t = in_wait(at_barrier);
		at_barrier(NULL);
		release = 1;
		CHECK_EQ(pthread_join(t, NULL), 0);
		CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
		t = in_wait(reading);
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
		usleep(150000);
		release = 1;
		CHECK_EQ(pthread_join(t, NULL), 0);
	}
	return 0;
}
