/* With the option libcalls=patch a thread is preempted inside libc, whatever it holds there: a
 * thread spins in a callback of dl_iterate_phdr, under the loader's lock, until threads of its
 * virtual processor have run. They do run, though some wait for that lock, and some fork, allocate
 * and print meanwhile. */
/* body: thread */
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, WORKERS = 3, FORKS = 5, PATIENCE = 200 };

static int asked, answered, stop;

static int spins(struct dl_phdr_info *info, size_t size, void *arg)
{
	int mine = __atomic_add_fetch(&asked, 1, __ATOMIC_RELEASE);

	(void)info, (void)size;
	while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) < mine)
		;
	++*(int *)arg;
	return 1;
}

static void *answers(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		__atomic_store_n(&answered, __atomic_load_n(&asked, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return arg;
}

/* Waits for the loader's lock, and for the allocator's. */
static void *works(void *arg)
{
	char text[100];

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		void *m = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL), *p = malloc(2000);

		CHECK(m != NULL && p != NULL);
		snprintf(text, sizeof text, "%p %g", p, 0.1);
		free(p);
		CHECK_EQ(dlclose(m), 0);
	}
	return arg;
}

static void *forks(void *arg)
{
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			free(malloc(2000));
			/* in the child the loader's lock stays another thread's, with kernel threads, too */
			_exit(3);
		}
		CHECK(pid > 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 3 << 8);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t other, forker, worker[WORKERS];
	int done = 0;

	(void)argc;
#if !defined(__x86_64__)
	return 77;
#endif
	if (!getenv("KOCHAB_LIBCALLS")) {
		setenv("KOCHAB_LIBCALLS", "patch", 1);
		setenv("MALLOC_ARENA_MAX", "1", 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	alarm(PATIENCE);
	CHECK_EQ(pthread_create(&other, NULL, answers, NULL), 0);
	CHECK_EQ(pthread_create(&forker, NULL, forks, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_create(&worker[i], NULL, works, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		dl_iterate_phdr(spins, &done);
	CHECK_EQ(pthread_join(forker, NULL), 0);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(other, NULL), 0);
	for (int i = 0; i < WORKERS; i++)
		CHECK_EQ(pthread_join(worker[i], NULL), 0);
	CHECK_EQ(done, ROUNDS);
	return 0;
}
