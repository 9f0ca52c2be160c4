/* A bounded buffer of one place, 20 producers, 20 consumers: no item is lost, a broadcast reaches
 * all threads. */
#include "test.h"

#include <pthread.h>

enum { SIDES = 20, ITEMS = 200 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int full, item, done;
static long sum;

static void *produce(void *arg)
{
	for (int i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&m);
		while (full)
			pthread_cond_wait(&emptied, &m);
		item = i;
		full = 1;
		pthread_mutex_unlock(&m);
		pthread_cond_signal(&filled);
	}
	return arg;
}

static void *consume(void *arg)
{
	pthread_mutex_lock(&m);
	for (;;) {
		while (!full && !done)
			pthread_cond_wait(&filled, &m);
		if (!full)
			break;
		sum += item;
		full = 0;
		pthread_cond_signal(&emptied);
	}
	pthread_mutex_unlock(&m);
	return arg;
}

int main(void)
{
	pthread_t p[SIDES], c[SIDES];

	for (int i = 0; i < SIDES; i++) {
		CHECK_EQ(pthread_create(&p[i], NULL, produce, NULL), 0);
		CHECK_EQ(pthread_create(&c[i], NULL, consume, NULL), 0);
	}
	for (int i = 0; i < SIDES; i++)
		CHECK_EQ(pthread_join(p[i], NULL), 0);
	pthread_mutex_lock(&m);
	done = 1;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < SIDES; i++)
		CHECK_EQ(pthread_join(c[i], NULL), 0);
	CHECK_EQ(sum, (long)SIDES * ITEMS * (ITEMS + 1) / 2);
	return 0;
}
