/* Detached threads, created so or detached later, by another thread or by themselves: they run, and
 * 3000 of them leave nothing behind. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t done, places;

static void *body(void *self)
{
	if (self)
		CHECK_EQ(pthread_detach(pthread_self()), 0);
	sem_post(&done);
	sem_post(&places);
	return NULL;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t;
	int n = 0;

	sem_init(&done, 0, 0);
	sem_init(&places, 0, 50);
	pthread_attr_init(&a);
	CHECK_EQ(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED), 0);
	for (int i = 0; i < 1000; i++) {
		sem_wait(&places);
		CHECK_EQ(pthread_create(&t, &a, body, NULL), 0);
		sem_wait(&places);
		CHECK_EQ(pthread_create(&t, NULL, body, &done), 0);
		sem_wait(&places);
		CHECK_EQ(pthread_create(&t, NULL, body, NULL), 0);
		CHECK_EQ(pthread_detach(t), 0);
	}
	while (n < 3000) {
		sem_wait(&done);
		n++;
	}
	return 0;
}
