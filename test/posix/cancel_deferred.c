/* pthread_cancel of threads that wait (condition variable, semaphore, sleep, join) and of a thread
 * that computes: acts at the next cancellation point, runs cleanup handlers, with the mutex held
 * after a condition wait; not while disabled. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static volatile int ready, cleaned, stop;

static void unlock(void *unused)
{
	(void)unused;
	cleaned++;
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void count(void *unused)
{
	(void)unused;
	cleaned++;
}

static void *in_cond(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push(unlock, NULL);
	ready = 1;
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(1);
	return arg;
}

static void *in_sem(void *arg)
{
	pthread_cleanup_push(count, NULL);
	ready = 1;
	for (;;)
		sem_wait(&s);
	pthread_cleanup_pop(1);
	return arg;
}

static void *in_sleep(void *arg)
{
	pthread_cleanup_push(count, NULL);
	ready = 1;
	for (;;)
		sleep(1000);
	pthread_cleanup_pop(1);
	return arg;
}

static void *computing(void *arg)
{
	pthread_cleanup_push(count, NULL);
	ready = 1;
	for (;;) {
		pthread_testcancel();
		sched_yield();
	}
	pthread_cleanup_pop(1);
	return arg;
}

static void *disabled(void *arg)
{
	int old;

	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	CHECK_EQ(old, PTHREAD_CANCEL_ENABLE);
	ready = 1;
	while (!stop)
		usleep(1000);
	pthread_testcancel();
	cleaned++;
	CHECK_EQ(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
	pthread_testcancel();
	CHECK(!"went on after pthread_testcancel");
	return arg;
}

static void cancel(void *(*fn)(void *), int settle)
{
	pthread_t t;
	void *r;

	ready = cleaned = stop = 0;
	CHECK_EQ(pthread_create(&t, NULL, fn, NULL), 0);
	while (!ready)
		sched_yield();
	if (settle)
		usleep(10000);
	CHECK_EQ(pthread_cancel(t), 0);
	stop = 1;
	CHECK_EQ(pthread_join(t, &r), 0);
	CHECK(r == PTHREAD_CANCELED);
	CHECK_EQ(cleaned, 1);
}

static void *fine(void *arg)
{
	pthread_testcancel();
	return arg;
}

int main(void)
{
	pthread_t t;
	void *r;

	sem_init(&s, 0, 0);
	for (int i = 0; i < 20; i++) {
		cancel(in_cond, i % 2);
		CHECK_EQ(pthread_mutex_trylock(&m), 0);
		pthread_mutex_unlock(&m);
		cancel(in_sem, i % 2);
		cancel(in_sleep, i % 2);
		cancel(computing, i % 2);
		cancel(disabled, i % 2);
		/* the next user of the control block is not cancelled */
		CHECK_EQ(pthread_create(&t, NULL, fine, &s), 0);
		CHECK_EQ(pthread_join(t, &r), 0);
		CHECK(r == &s);
	}
	return 0;
}
