/* core/process_fork: two threads whose virtual processors are processes fork at the same time, by the
 * system call, so without libc's lock, which orders forks. A fork does not wait for the program's
 * descriptors in the other fork's child: both return while both children live.
 * matrix: none
 * body: thread (it chooses by itself) */
#include <kochab/kochab.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(SYS_fork)

int main(void)
{
	SKIP("not with sanitizers, nor where fork is no system call");
}

#else

enum {
	ROUNDS = 30,
	N = 2,
	PATIENCE = 20 /* s; of a child */
};

static int ends[2];
static uint32_t here, forked;

static void meet(uint32_t *n, uint32_t all)
{
	__atomic_add_fetch(n, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < all)
		kb_yield();
}

/* Waits until both forks have returned. A fork that waits for a child's end holds up the program
 * until the alarm. */
static void live(void)
{
	char c;

	alarm(PATIENCE);
	_exit(read(ends[0], &c, 1) != 1);
}

static void *forks(void *unused)
{
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		int status;
		pid_t pid;

		meet(&here, i * N);
		pid = (pid_t)syscall(SYS_fork);
		CHECK(pid >= 0);
		if (pid == 0)
			live();
		meet(&forked, i * N);
		CHECK_EQ(write(ends[1], "", 1), 1);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return unused;
}

int main(void)
{
	kb_thread_t t[N];

	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		SKIP("no process bodies here");
	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, forks, NULL), 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
}

#endif
