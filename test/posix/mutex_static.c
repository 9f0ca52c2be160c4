/* Statically initialised mutexes of every kind exclude 16 threads from each other. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 16, TIMES = 2000 };

static pthread_mutex_t mutexes[] = {
	PTHREAD_MUTEX_INITIALIZER,
	PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
	PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
	PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};
static volatile long counter;
static volatile int inside;

static void *add(void *arg)
{
	pthread_mutex_t *m = arg;

	for (int i = 0; i < TIMES; i++) {
		CHECK_EQ(pthread_mutex_lock(m), 0);
		CHECK_EQ(inside, 0);
		inside = 1;
		counter++;
		if (i % 64 == 0)
			sched_yield();
		inside = 0;
		CHECK_EQ(pthread_mutex_unlock(m), 0);
	}
	return NULL;
}

int main(void)
{
	for (unsigned k = 0; k < sizeof(mutexes) / sizeof(mutexes[0]); k++) {
		pthread_t t[THREADS];

		counter = 0;
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, add, &mutexes[k]), 0);
		for (int i = 0; i < THREADS; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		CHECK_EQ(counter, (long)THREADS * TIMES);
		CHECK_EQ(pthread_mutex_destroy(&mutexes[k]), 0);
	}
	return 0;
}
