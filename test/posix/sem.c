/* Semaphores: values and errors, timed waits, 100 threads through 3 places; named and
 * process-shared ones. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 100, PLACES = 3, TIMES = 100 };

static sem_t s;
static int inside;

static void *pass(void *arg)
{
	sem_t *places = arg;

	for (int i = 0; i < TIMES; i++) {
		int n;

		CHECK_EQ(sem_wait(places), 0);
		n = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
		CHECK(n <= PLACES);
		if (i % 8 == 0)
			sched_yield();
		__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
		CHECK_EQ(sem_post(places), 0);
	}
	return NULL;
}

static void crowd(sem_t *places)
{
	static pthread_t t[THREADS];
	int v;

	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, pass, places), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	CHECK_EQ(sem_getvalue(places, &v), 0);
	CHECK_EQ(v, PLACES);
	for (int i = 0; i < PLACES; i++)
		CHECK_EQ(sem_trywait(places), 0);
	CHECK_EQ(sem_trywait(places), -1);
	for (int i = 0; i < PLACES; i++)
		CHECK_EQ(sem_post(places), 0);
}

static void errors(void)
{
	struct timespec t, bad = { 0, -1 };
	int v;

	CHECK_EQ(sem_init(&s, 0, (unsigned)SEM_VALUE_MAX + 1u), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(sem_init(&s, 0, SEM_VALUE_MAX), 0);
	CHECK_EQ(sem_post(&s), -1);
	CHECK_EQ(errno, EOVERFLOW);
	CHECK_EQ(sem_init(&s, 0, 1), 0);
	CHECK_EQ(sem_trywait(&s), 0);
	CHECK_EQ(sem_trywait(&s), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(sem_getvalue(&s, &v), 0);
	CHECK_EQ(v, 0);
	clock_gettime(CLOCK_REALTIME, &t);
	CHECK_EQ(sem_timedwait(&s, &t), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(sem_timedwait(&s, &bad), -1);
	CHECK_EQ(errno, EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += (t.tv_nsec + 20000000) / 1000000000;
	t.tv_nsec = (t.tv_nsec + 20000000) % 1000000000;
	CHECK_EQ(sem_clockwait(&s, CLOCK_MONOTONIC, &t), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(sem_destroy(&s), 0);
}

static void with_a_child(void)
{
	sem_t *two = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	CHECK(two != MAP_FAILED);
	CHECK_EQ(sem_init(&two[0], 1, 0), 0);
	CHECK_EQ(sem_init(&two[1], 1, 0), 0);
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 50; i++) {
			sem_wait(&two[0]);
			sem_post(&two[1]);
		}
		_exit(0);
	}
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(sem_post(&two[0]), 0);
		CHECK_EQ(sem_wait(&two[1]), 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(void)
{
	char name[64];
	sem_t *named;

	errors();
	CHECK_EQ(sem_init(&s, 0, PLACES), 0);
	crowd(&s);
	errors();
	snprintf(name, sizeof(name), "/kochab-test-%d", (int)getpid());
	named = sem_open(name, O_CREAT | O_EXCL, 0600, PLACES);
	if (named != SEM_FAILED) {
		crowd(named);
		CHECK_EQ(sem_close(named), 0);
		CHECK_EQ(sem_unlink(name), 0);
	}
	with_a_child();
	return 0;
}
