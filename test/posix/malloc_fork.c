/* fork while further threads allocate: the child allocates, frees its parent's memory, makes
 * threads and ends. Also run with libkochab-malloc.so by malloc_kochab.sh. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { WORKERS = 3, FORKS = 40, BLOCKS = 300 };

static int stop;

static void *churn(void *arg)
{
	uint64_t s = test_seed() + (uintptr_t)arg;
	char *block[BLOCKS] = { 0 };

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		unsigned at = test_rand(&s) % BLOCKS;

		free(block[at]);
		block[at] = malloc(1 + test_rand(&s) % (at % 50 ? 600 : 100000));
		block[at][0] = 1;
		if (at == 0)
			sched_yield();
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
	return NULL;
}

static void *brief(void *arg)
{
	free(arg);
	return malloc(1000);
}

static void child(char **inherited)
{
	pthread_t t;
	void *p;

	for (unsigned i = 0; i < BLOCKS; i++) {
		CHECK_EQ(inherited[i][0], 'a' + i % 26);
		free(inherited[i]);
		inherited[i] = malloc(i * 100);
	}
	CHECK_EQ(pthread_create(&t, NULL, brief, malloc(10)), 0);
	CHECK_EQ(pthread_join(t, &p), 0);
	free(p);
	_exit(0);
}

int main(void)
{
	pthread_t t[WORKERS];
	char *block[BLOCKS];

	test_seed(); /* settled before threads ask for it */
	for (uintptr_t i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, churn, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < BLOCKS; i++) {
		block[i] = malloc(i * 20 + 1);
		block[i][0] = (char)('a' + i % 26);
	}
	for (unsigned i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			child(block);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < BLOCKS; i++)
		free(block[i]);
	return 0;
}
