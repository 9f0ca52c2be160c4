/* matrix: vps=1 sched=rotator
 * A program on a single virtual processor forbids itself membarrier after the start: kernel threads
 * may come and use its mutexes all the same. A second program forks: further kernel threads may
 * join the child's only kernel thread.
 * body: thread */
#include <kochab/kochab.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 3, ROUNDS = 2000 };

static kb_mutex_t mutex = KB_MUTEX_INIT;
static long counter;

static void *adds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(kb_mutex_lock(&mutex), 0);
		counter++;
		CHECK_EQ(kb_mutex_unlock(&mutex), 0);
		if (arg && i % 16 == 0)
			kb_yield();
	}
	return NULL;
}

static void add_on_both(void)
{
	kb_thread_t t[THREADS];
	pthread_t foreign;

	counter = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_create(&t[i], NULL, adds, &mutex), 0);
	kb_yield();
	CHECK_EQ(pthread_create(&foreign, NULL, adds, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(kb_thread_join(t[i], NULL), 0);
	CHECK_EQ(pthread_join(foreign, NULL), 0);
	CHECK_EQ(counter, (THREADS + 1L) * ROUNDS);
}

static void forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		SKIP("no seccomp here");
}

static void in_child(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		add_on_both();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	CHECK_EQ(kb_init(), 0);
	adds(NULL);
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer knows no threads after a fork */
	in_child();
#else
	(void)in_child;
#endif
	forbid_membarrier();
	add_on_both();
	return 0;
}
