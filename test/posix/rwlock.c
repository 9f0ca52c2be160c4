/* Readers-writer locks: readers together, writers alone; a second read lock while a writer waits;
 * preference for writers where asked; timed locks; a process-shared one. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 30, TIMES = 300 };

static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static int readers, writers;
static long value;

static void *work(void *arg)
{
	uint64_t r = test_seed() + (uint64_t)(uintptr_t)arg;

	for (int i = 0; i < TIMES; i++) {
		if (test_rand(&r) % 4 == 0) {
			CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
			CHECK_EQ(__atomic_add_fetch(&writers, 1, __ATOMIC_RELAXED), 1);
			CHECK_EQ(__atomic_load_n(&readers, __ATOMIC_RELAXED), 0);
			value++;
			sched_yield();
			__atomic_sub_fetch(&writers, 1, __ATOMIC_RELAXED);
		} else {
			long v;

			CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
			__atomic_add_fetch(&readers, 1, __ATOMIC_RELAXED);
			v = value;
			sched_yield();
			CHECK_EQ(value, v);
			CHECK_EQ(__atomic_load_n(&writers, __ATOMIC_RELAXED), 0);
			__atomic_sub_fetch(&readers, 1, __ATOMIC_RELAXED);
		}
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	}
	return NULL;
}

static void crowd(void)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, work, (void *)(i + 1)), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

static volatile int waiting;

static void *write_once(void *arg)
{
	waiting = 1;
	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	return arg;
}

static void sleep_ms(long ms)
{
	struct timespec t = { 0, ms * 1000000 };

	nanosleep(&t, NULL);
}

/* Returns whether a thread that reads can lock for reading again while a writer waits. */
static void second_read(int expected)
{
	pthread_t t;

	waiting = 0;
	CHECK_EQ(pthread_rwlock_rdlock(&l), 0);
	CHECK_EQ(pthread_create(&t, NULL, write_once, NULL), 0);
	while (!waiting)
		sched_yield();
	sleep_ms(20);
	CHECK_EQ(pthread_rwlock_tryrdlock(&l), expected);
	if (expected == 0)
		CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
}

static void *other(void *arg)
{
	struct timespec t;

	CHECK_EQ(pthread_rwlock_tryrdlock(&l), EBUSY);
	CHECK_EQ(pthread_rwlock_trywrlock(&l), EBUSY);
	clock_gettime(CLOCK_REALTIME, &t);
	CHECK_EQ(pthread_rwlock_timedrdlock(&l, &t), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_timedwrlock(&l, &t), ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &t);
	CHECK_EQ(pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &t), ETIMEDOUT);
	CHECK_EQ(pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &t), ETIMEDOUT);
	t.tv_nsec = -1;
	CHECK_EQ(pthread_rwlock_timedrdlock(&l, &t), EINVAL);
	return arg;
}

static void errors(void)
{
	pthread_t t;

	CHECK_EQ(pthread_rwlock_wrlock(&l), 0);
	CHECK_EQ(pthread_rwlock_rdlock(&l), EDEADLK);
	CHECK_EQ(pthread_rwlock_wrlock(&l), EDEADLK);
	CHECK_EQ(pthread_create(&t, NULL, other, NULL), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(pthread_rwlock_unlock(&l), 0);
}

static void make(int kind, int shared)
{
	pthread_rwlockattr_t a;

	CHECK_EQ(pthread_rwlock_destroy(&l), 0);
	CHECK_EQ(pthread_rwlockattr_init(&a), 0);
	CHECK_EQ(pthread_rwlockattr_setkind_np(&a, kind), 0);
	CHECK_EQ(pthread_rwlockattr_setpshared(&a, shared), 0);
	CHECK_EQ(pthread_rwlock_init(&l, &a), 0);
}

/* POSIX leaves the result open; libc returns 0. */
static void unlocked(void)
{
	pthread_rwlock_t never = PTHREAD_RWLOCK_INITIALIZER;

	CHECK_EQ(pthread_rwlock_unlock(&never), 0);
	CHECK_EQ(pthread_rwlock_destroy(&never), 0);
}

int main(void)
{
	unlocked();
	crowd();
	errors();
	second_read(0);
	make(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_PRIVATE);
	crowd();
	errors();
	second_read(EBUSY);
	make(PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_PROCESS_SHARED);
	crowd();
	errors();
	return 0;
}
