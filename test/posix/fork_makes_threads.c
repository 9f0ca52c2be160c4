/* libc/tcb_donor: a child that was forked by any of several threads, on any virtual processor,
 * makes and joins many threads of its own, and ends well: the kernel no longer writes to the memory
 * of its parent's kernel thread.
 * matrix: run-only */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARENTS = 8, FORKS = 4, CHILDS = 20, ROUNDS = 20, STACK = 8 << 20 };

static void *nothing(void *unused)
{
	return unused;
}

static void in_child(void)
{
	pthread_t t[CHILDS];
	pthread_attr_t attr;

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, STACK), 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CHILDS; i++)
			CHECK_EQ(pthread_create(&t[i], &attr, nothing, NULL), 0);
		for (int i = 0; i < CHILDS; i++)
			CHECK_EQ(pthread_join(t[i], NULL), 0);
		usleep(500);
		sched_yield(); /* the kernel writes when the processor changes */
	}
	_exit(0);
}

static void *forks(void *unused)
{
	int status;
	pid_t pid;

	for (int i = 0; i < FORKS; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			in_child();
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return unused;
}

int main(void)
{
	pthread_t t[PARENTS];

	for (int i = 0; i < PARENTS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, forks, NULL), 0);
	for (int i = 0; i < PARENTS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	return 0;
}
