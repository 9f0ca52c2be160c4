/* libc/tcb: fork, from a block and beside blocks: the child's libc works, the child makes new
 * blocks, dlopen's walk of libc's thread list reaches them, and the block that the child runs on
 * keeps its tid.
 * matrix: none */
#include "tcb_runner.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static __thread int value = 5;

static void *plain_thread(void *arg)
{
	return arg;
}

static void in_new_block(void *arg)
{
	CHECK_EQ(value, 5);
	value = 6;
	*(int *)arg = 1;
	free(malloc(1000));
}

static void live_in_child(struct kbi_tcb *t)
{
	struct runner r[3];
	pthread_t thread;
	void *result, *lib;

	kbi_tcb_after_fork(t);
	kbi_tcb_thaw();
	CHECK_EQ(pthread_create(&thread, NULL, plain_thread, &r), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == &r);
	for (unsigned i = 0; i < 3; i++) {
		int ran = 0;

		runner_make(&r[i], 50 + i);
		runner_run(&r[i], in_new_block, &ran);
		runner_run(&r[i], in_new_block, &ran);
		CHECK_EQ(ran, 1);
	}
	lib = dlopen("libm.so.6", RTLD_NOW);
	CHECK(lib != NULL);
	dlclose(lib);
	for (unsigned i = 0; i < 3; i++)
		runner_free(&r[i]);
}

static void fork_once(struct kbi_tcb *t)
{
	int status = -1;
	pid_t pid;

	kbi_tcb_freeze();
	pid = fork();
	if (pid == 0) {
		live_in_child(t);
		_exit(42);
	}
	kbi_tcb_thaw();
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void from_block(void *unused)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;

	(void)unused;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&m, &attr);
	value = 9;
	fork_once(&runner_current()->tcb);
	CHECK_EQ(value, 9);
	CHECK_EQ(pthread_mutex_lock(&m), 0);
	runner_pause();
	CHECK_EQ(pthread_mutex_lock(&m), EDEADLK);
	CHECK_EQ(pthread_mutex_unlock(&m), 0);
}

static void test(void)
{
	struct runner r[4];

	for (unsigned i = 0; i < 4; i++)
		runner_make(&r[i], i);
	fork_once(NULL);
	for (unsigned i = 0; i < 4; i++)
		runner_run(&r[i], from_block, NULL);
	fork_once(NULL);
	for (unsigned i = 0; i < 4; i++)
		runner_free(&r[i]);
}

int main(void)
{
	return runner_each_mode(test);
}
