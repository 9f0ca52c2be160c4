/* Thread-specific data: values of each thread's own, destructors in up to four rounds, no
 * destructor for NULL or after delete. */
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 40 };

static pthread_key_t stubborn, counted, silent, deleted;
static pthread_barrier_t gate;
static int rounds, ended, wrong;

static void set_again(void *v)
{
	__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	pthread_setspecific(stubborn, v);
}

static void count(void *v)
{
	if (v == NULL || pthread_getspecific(counted) != NULL)
		wrong = 1;
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELAXED);
}

static void never(void *v)
{
	(void)v;
	wrong = 1;
}

static void *use(void *arg)
{
	CHECK(pthread_getspecific(counted) == NULL);
	CHECK(pthread_getspecific(stubborn) == NULL);
	CHECK_EQ(pthread_setspecific(counted, arg), 0);
	pthread_setspecific(deleted, arg); /* EINVAL once it is deleted */
	CHECK_EQ(pthread_setspecific(silent, arg), 0);
	CHECK_EQ(pthread_setspecific(silent, NULL), 0);
	pthread_barrier_wait(&gate); /* it is deleted */
	for (int i = 0; i < 20; i++) {
		sched_yield();
		CHECK(pthread_getspecific(counted) == arg);
	}
	if ((long)arg == 1)
		pthread_setspecific(stubborn, arg);
	if ((long)arg % 2)
		pthread_exit(arg);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_key_t many[PTHREAD_KEYS_MAX];
	int n = 0, e;

	CHECK_EQ(pthread_key_create(&stubborn, set_again), 0);
	CHECK_EQ(pthread_key_create(&counted, count), 0);
	CHECK_EQ(pthread_key_create(&silent, never), 0);
	CHECK_EQ(pthread_key_create(&deleted, never), 0);
	CHECK_EQ(pthread_setspecific(deleted, &n), 0);
	CHECK_EQ(pthread_barrier_init(&gate, NULL, THREADS + 1), 0);
	CHECK_EQ(pthread_setspecific(PTHREAD_KEYS_MAX, &n), EINVAL);
	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, use, (void *)(i + 1)), 0);
	CHECK_EQ(pthread_key_delete(deleted), 0);
	CHECK_EQ(pthread_key_delete(deleted), EINVAL);
	pthread_barrier_wait(&gate);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(ended, THREADS);
	CHECK_EQ(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
	CHECK_EQ(wrong, 0);
	while ((e = pthread_key_create(&many[n], NULL)) == 0)
		n++;
	CHECK_EQ(e, EAGAIN);
	CHECK(n > 900);
	while (n > 0)
		CHECK_EQ(pthread_key_delete(many[--n]), 0);
	return 0;
}
