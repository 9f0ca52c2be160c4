/* Normal, recursive, error-checking and adaptive mutexes: which thread may lock again, which thread
 * may unlock. */
#include "test.h"

#include <errno.h>
#include <pthread.h>

static pthread_mutex_t m;

static void make(int type)
{
	pthread_mutexattr_t a;

	CHECK_EQ(pthread_mutexattr_init(&a), 0);
	CHECK_EQ(pthread_mutexattr_settype(&a, type), 0);
	CHECK_EQ(pthread_mutex_init(&m, &a), 0);
	CHECK_EQ(pthread_mutexattr_destroy(&a), 0);
}

static void *other(void *unlocks)
{
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	if (unlocks)
		CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	return NULL;
}

static void ask_other(int unlocks)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, other, unlocks ? &m : NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void recursive(void)
{
	make(PTHREAD_MUTEX_RECURSIVE);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_trylock(&m), 0);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	ask_other(1);
	CHECK_EQ(pthread_mutex_destroy(&m), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void errorcheck(void)
{
	make(PTHREAD_MUTEX_ERRORCHECK);
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	ask_other(1);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_unlock(&m), EPERM);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

static void plain(int type)
{
	make(type);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	ask_other(0);
	CHECK_EQ(pthread_mutex_trylock(&m), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
	CHECK_EQ(pthread_mutex_destroy(&m), 0);
}

int main(void)
{
	recursive(); /* before the first thread has started the runtime, and after */
	recursive();
	errorcheck();
	plain(PTHREAD_MUTEX_NORMAL);
	plain(PTHREAD_MUTEX_DEFAULT);
	plain(PTHREAD_MUTEX_ADAPTIVE_NP);
	return 0;
}
