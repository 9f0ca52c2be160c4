/* A recursive and an error-checking mutex that were locked before the first thread is made still
 * belong to the locker. */
#include "test.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
	e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void *other(void *arg)
{
	CHECK_EQ(pthread_mutex_trylock(&r), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&r), EPERM);
	CHECK_EQ(pthread_mutex_unlock(&e), EPERM);
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK_EQ(pthread_mutex_lock(&r), 0);
	CHECK_EQ(pthread_mutex_lock(&e), 0);
	CHECK_EQ(pthread_create(&t, NULL, other, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_mutex_lock(&r), 0);
	CHECK_EQ(pthread_mutex_lock(&e), EDEADLK);
	CHECK_EQ(pthread_mutex_unlock(&r), 0);
	CHECK_EQ(pthread_mutex_unlock(&r), 0);
	CHECK_EQ(pthread_mutex_unlock(&e), 0);
	CHECK_EQ(pthread_mutex_unlock(&r), EPERM);
	return 0;
}
