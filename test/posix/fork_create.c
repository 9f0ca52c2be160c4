/* A child of fork, made while threads are created and end: an operation that another thread had
 * begun at the fork blocks no thread of the child. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAKERS = 3, AT_ONCE = 300, FORKS = 60, CHILD_THREADS = 3, PATIENCE = 60 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int stop, count;

static void *nothing(void *arg)
{
	return arg;
}

/* Makes many at once: more than a virtual processor keeps for itself, so that the common stock is
 * used all the time. */
static void *maker(void *arg)
{
	pthread_t t[AT_ONCE];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, nothing, NULL), 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
	}
	return arg;
}

static void *in_child(void *arg)
{
	CHECK_EQ(pthread_setspecific(key, &m), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(pthread_mutex_lock(&m), 0);
		count++;
		CHECK_EQ(pthread_mutex_unlock(&m), 0);
	}
	return arg;
}

static void child(void)
{
	pthread_t t[CHILD_THREADS];

	alarm(PATIENCE); /* instead of the test's own time-out, which does not tell the place */
	for (int i = 0; i < CHILD_THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, in_child, NULL), 0);
	for (int i = 0; i < CHILD_THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	_exit(count == 100 * CHILD_THREADS ? 3 : 4);
}

int main(void)
{
	pthread_t t[MAKERS];

	CHECK_EQ(pthread_key_create(&key, NULL), 0);
	for (int i = 0; i < MAKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, maker, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			child();
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 3 << 8);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < MAKERS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
