/* Kernel threads that were not made through pthread_create (a SIGEV_THREAD timer's, one cloned by
 * libc) use our mutexes, semaphores and conditions with our threads. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { TICKS = 5 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static int ticks;

static void tick(union sigval v)
{
	(void)v;
	pthread_mutex_lock(&m);
	usleep(2000);
	ticks++;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	sem_post(&s);
}

static void *wait_for_ticks(void *arg)
{
	pthread_mutex_lock(&m);
	while (ticks < TICKS)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return arg;
}

int main(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick };
	struct itimerspec its = { { 0, 3000000 }, { 0, 3000000 } };
	pthread_t t[20];
	timer_t timer;

	sem_init(&s, 0, 0);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, wait_for_ticks, NULL), 0);
	CHECK_EQ(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	CHECK_EQ(timer_settime(timer, 0, &its, NULL), 0);
	for (int i = 0; i < TICKS; i++)
		while (sem_wait(&s))
			;
	for (int i = 0; i < 20; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(timer_delete(timer), 0);
	CHECK(ticks >= TICKS);
	return 0;
}
