/* 2000 threads of the default stack size wait, are woken together, and end. */
#include "test.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 2000 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER, all_here = PTHREAD_COND_INITIALIZER;
static int here, go;

static void *park(void *arg)
{
	char frame[1000];

	memset(frame, (int)(long)arg, sizeof(frame));
	pthread_mutex_lock(&m);
	if (++here == THREADS)
		pthread_cond_signal(&all_here);
	while (!go)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	for (size_t i = 0; i < sizeof(frame); i++)
		CHECK_EQ(frame[i], (char)(long)arg);
	return arg;
}

int main(void)
{
	static pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, park, (void *)i), 0);
	pthread_mutex_lock(&m);
	while (here < THREADS)
		pthread_cond_wait(&all_here, &m);
	go = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	for (long i = 0; i < THREADS; i++) {
		void *r;

		CHECK_EQ(pthread_join(t[i], &r), 0);
		CHECK_EQ((long)r, i);
	}
	return 0;
}
