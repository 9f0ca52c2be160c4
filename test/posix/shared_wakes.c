/* posix/libc_mutex: a thread that waits for a process-shared semaphore or readers-writer lock goes on
 * when a thread of this process releases it, and not only at its next look. The wait takes about as
 * long as with private objects, in the median. On a busy machine the kernel's turns last as long,
 * so one good run among several is enough. */
#include "test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 60, KINDS = 2, LONG_US = 8000, ALLOWED_NS = 400000, GOES = 5 };

static sem_t sem[KINDS], taken;
static pthread_rwlock_t lock[KINDS];
static volatile uint64_t given_at;
static uint64_t late[KINDS][ROUNDS];

static void *wait_sem(void *arg)
{
	for (int i = 0; i < KINDS * ROUNDS; i++) {
		CHECK_EQ(sem_wait(&sem[i % KINDS]), 0);
		late[i % KINDS][i / KINDS] = test_now_ns() - given_at;
		CHECK_EQ(sem_post(&taken), 0);
	}
	return arg;
}

static void *wait_lock(void *arg)
{
	for (int i = 0; i < KINDS * ROUNDS; i++) {
		CHECK_EQ(sem_wait(&taken), 0);
		CHECK_EQ(pthread_rwlock_rdlock(&lock[i % KINDS]), 0);
		late[i % KINDS][i / KINDS] = test_now_ns() - given_at;
		CHECK_EQ(pthread_rwlock_unlock(&lock[i % KINDS]), 0);
		CHECK_EQ(sem_post(&sem[0]), 0);
	}
	return arg;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_soon(const char *what)
{
	uint64_t private, shared;

	for (int k = 0; k < KINDS; k++)
		qsort(late[k], ROUNDS, sizeof(late[k][0]), compare);
	private = late[0][ROUNDS / 2];
	shared = late[1][ROUNDS / 2];
	printf("%s: private %lu ns, shared %lu ns\n", what, (unsigned long)private, (unsigned long)shared);
	return shared < 4 * private + ALLOWED_NS;
}

static bool semaphores_are_soon(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, wait_sem, NULL), 0);
	for (int i = 0; i < KINDS * ROUNDS; i++) {
		usleep(LONG_US);
		given_at = test_now_ns();
		CHECK_EQ(sem_post(&sem[i % KINDS]), 0);
		CHECK_EQ(sem_wait(&taken), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	return is_soon("semaphores");
}

static bool locks_are_soon(void)
{
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, wait_lock, NULL), 0);
	for (int i = 0; i < KINDS * ROUNDS; i++) {
		CHECK_EQ(pthread_rwlock_wrlock(&lock[i % KINDS]), 0);
		CHECK_EQ(sem_post(&taken), 0);
		usleep(LONG_US);
		given_at = test_now_ns();
		CHECK_EQ(pthread_rwlock_unlock(&lock[i % KINDS]), 0);
		CHECK_EQ(sem_wait(&sem[0]), 0);
	}
	CHECK_EQ(pthread_join(t, NULL), 0);
	return is_soon("locks");
}

static void once_of_several(bool (*is_soon_now)(void))
{
	for (int i = 0; i < GOES; i++)
		if (is_soon_now())
			return;
	CHECK(!"as long as private ones");
}

int main(void)
{
	pthread_rwlockattr_t attr;

	CHECK(sem_init(&sem[0], 0, 0) == 0 && sem_init(&sem[1], 1, 0) == 0 && sem_init(&taken, 0, 0) == 0);
	CHECK(pthread_rwlockattr_init(&attr) == 0 && pthread_rwlock_init(&lock[0], NULL) == 0);
	CHECK_EQ(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED), 0);
	CHECK_EQ(pthread_rwlock_init(&lock[1], &attr), 0);
	once_of_several(semaphores_are_soon);
	once_of_several(locks_are_soon);
	return 0;
}
