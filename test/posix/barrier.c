/* Barriers: no thread passes before all have come, each round tells a single thread that it is the
 * serial thread, and that thread may destroy the barrier at once. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 50, ROUNDS = 50 };

static pthread_barrier_t b;
static int come[ROUNDS], serial[ROUNDS];

static void *walk(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int e;

		__atomic_add_fetch(&come[i], 1, __ATOMIC_RELAXED);
		e = pthread_barrier_wait(&b);
		CHECK(e == 0 || e == PTHREAD_BARRIER_SERIAL_THREAD);
		CHECK_EQ(__atomic_load_n(&come[i], __ATOMIC_RELAXED), THREADS);
		if (e)
			__atomic_add_fetch(&serial[i], 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static void *meet(void *arg)
{
	pthread_barrier_t *two = arg;

	if (pthread_barrier_wait(two) == PTHREAD_BARRIER_SERIAL_THREAD) {
		CHECK_EQ(pthread_barrier_destroy(two), 0);
		free(two);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	pthread_barrierattr_t a;

	CHECK_EQ(pthread_barrier_init(&b, NULL, 0), EINVAL);
	CHECK_EQ(pthread_barrier_init(&b, NULL, THREADS), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, walk, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(serial[i], 1);
	CHECK_EQ(pthread_barrier_destroy(&b), 0);
	for (int i = 0; i < 200; i++) {
		pthread_barrier_t *two = malloc(sizeof(*two));

		CHECK_EQ(pthread_barrier_init(two, NULL, 2), 0);
		CHECK_EQ(pthread_create(&t[0], NULL, meet, two), 0);
		meet(two);
		CHECK_EQ(pthread_join(t[0], NULL), 0);
	}
	/* a process-shared barrier for one thread */
	CHECK_EQ(pthread_barrierattr_init(&a), 0);
	CHECK_EQ(pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_barrier_init(&b, &a, 1), 0);
	CHECK_EQ(pthread_barrier_wait(&b), PTHREAD_BARRIER_SERIAL_THREAD);
	CHECK_EQ(pthread_barrier_destroy(&b), 0);
	return 0;
}
