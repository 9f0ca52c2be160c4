/* Joining the caller itself and a detached thread. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static sem_t go;
static pthread_t first;

static void *self(void *arg)
{
	CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
	return arg;
}

static void *wait_for_go(void *arg)
{
	while (sem_wait(&go))
		;
	return arg;
}

static void *join_first(void *arg)
{
	CHECK_EQ(pthread_join(first, NULL), 0);
	return arg;
}

int main(void)
{
	pthread_attr_t a;
	pthread_t t, j;

	sem_init(&go, 0, 0);
	CHECK_EQ(pthread_join(pthread_self(), NULL), EDEADLK);
	CHECK_EQ(pthread_create(&t, NULL, self, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_create(&first, NULL, wait_for_go, NULL), 0);
	CHECK_EQ(pthread_create(&j, NULL, join_first, NULL), 0);
	sem_post(&go);
	CHECK_EQ(pthread_join(j, NULL), 0);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	CHECK_EQ(pthread_create(&t, &a, wait_for_go, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), EINVAL);
	CHECK_EQ(pthread_detach(t), EINVAL);
	sem_post(&go);
	return 0;
}
