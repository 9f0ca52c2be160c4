/* tryjoin, timedjoin and clockjoin: too early, in time, bad arguments. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

static sem_t go;

static void *wait_for_go(void *arg)
{
	while (sem_wait(&go))
		;
	return arg;
}

int main(void)
{
	struct timespec t;
	int mark;
	pthread_t th;
	void *r = NULL;
	uint64_t start;

	sem_init(&go, 0, 0);
	CHECK_EQ(pthread_create(&th, NULL, wait_for_go, &mark), 0);
	CHECK_EQ(pthread_tryjoin_np(th, &r), EBUSY);
	start = test_now_ns();
	t = test_in_ms(CLOCK_REALTIME, 20);
	CHECK_EQ(pthread_timedjoin_np(th, &r, &t), ETIMEDOUT);
	CHECK(test_now_ns() - start >= 19000000);
	t = test_in_ms(CLOCK_MONOTONIC, 20);
	CHECK_EQ(pthread_clockjoin_np(th, &r, CLOCK_MONOTONIC, &t), ETIMEDOUT);
	CHECK(r == NULL);
	sem_post(&go);
	t = test_in_ms(CLOCK_REALTIME, 20000);
	CHECK_EQ(pthread_timedjoin_np(th, &r, &t), 0);
	CHECK(r == &mark);
	CHECK_EQ(pthread_create(&th, NULL, wait_for_go, &go), 0);
	sem_post(&go);
	while (pthread_tryjoin_np(th, &r) == EBUSY)
		sched_yield();
	CHECK(r == &go);
	return 0;
}
