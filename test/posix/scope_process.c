/* KOCHAB_SCOPE=process: threads that ask for PTHREAD_SCOPE_SYSTEM are lightweight; without it each has a kernel thread.
 * matrix: run-only */
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 40 };

static pthread_barrier_t all;

static void *wait_for_all(void *arg)
{
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&all);
	return arg;
}

static int kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	pthread_attr_t a;
	int scope, n;

	if (argc == 1) { /* it is read when the process starts */
		char *again[] = { argv[0], (char *)(uintptr_t)"process", NULL };
		pid_t child = fork();

		if (child == 0) {
			setenv("KOCHAB_SCOPE", "process", 1);
			execv("/proc/self/exe", again);
			_exit(127);
		}
		CHECK_EQ(waitpid(child, &n, 0), child);
		CHECK_EQ(n, 0);
	}
	pthread_barrier_init(&all, NULL, THREADS + 1);
	pthread_attr_init(&a);
	CHECK_EQ(pthread_attr_setscope(&a, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_EQ(pthread_attr_getscope(&a, &scope), 0);
	CHECK_EQ(scope, PTHREAD_SCOPE_SYSTEM);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], &a, wait_for_all, NULL), 0);
	pthread_barrier_wait(&all);
	n = kernel_threads();
	CHECK(argc == 1 ? n > THREADS : n < THREADS);
	pthread_barrier_wait(&all);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
