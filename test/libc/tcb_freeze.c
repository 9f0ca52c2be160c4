/* libc/tcb: while a thread keeps blocks frozen, no thread makes or ends a block, and all continue
 * after the thaw. Two freezing threads take turns. A child forked meanwhile works in all respects.
 * matrix: none */
#include "tcb_runner.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { MAKERS = 3, FREEZERS = 2, FREEZES = 60 };

static int made, frozen_by, done;

static void *maker(void *arg)
{
	struct runner r;

	while (__atomic_load_n(&done, __ATOMIC_RELAXED) < FREEZERS) {
		runner_make(&r, (unsigned)(intptr_t)arg);
		__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
		runner_free(&r);
	}
	return NULL;
}

/* A maker counts after it has left the gate: each may count once more while we look. */
static void look(void)
{
	int before = __atomic_load_n(&made, __ATOMIC_RELAXED);

	CHECK_EQ(__atomic_add_fetch(&frozen_by, 1, __ATOMIC_RELAXED), 1);
	usleep(300);
	CHECK(__atomic_load_n(&made, __ATOMIC_RELAXED) - before <= MAKERS);
	CHECK_EQ(__atomic_sub_fetch(&frozen_by, 1, __ATOMIC_RELAXED), 0);
}

static void child(void)
{
	struct runner r;

	kbi_tcb_after_fork(NULL);
	kbi_tcb_thaw();
	runner_make(&r, 99);
	runner_free(&r);
	_exit(42);
}

static void fork_here(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		child();
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void *freezer(void *arg)
{
	for (int i = 0; i < FREEZES; i++) {
		kbi_tcb_freeze();
		look();
		if ((intptr_t)arg == MAKERS && i % 10 == 0)
			fork_here();
		kbi_tcb_thaw();
		sched_yield();
	}
	__atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void test(void)
{
	pthread_t threads[MAKERS + FREEZERS];

	for (intptr_t i = 0; i < MAKERS + FREEZERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, i < MAKERS ? maker : freezer, (void *)i), 0);
	for (int i = 0; i < MAKERS + FREEZERS; i++)
		pthread_join(threads[i], NULL);
	CHECK(made > MAKERS);
}

int main(void)
{
	return runner_each_mode(test);
}
