/* libc/segment, posix/identity: a program whose threads have been switched often installs a system
 * call filter for all threads at once, which kills the program at a call that the program does not
 * make itself. The library makes no such call, and old and new threads keep their TLS. The test
 * also covers a program that begins with the filter, and each child of fork. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { THREADS = 8, SWITCHES = 1000 };

static __thread uintptr_t mine;

static void *switches(void *arg)
{
	uintptr_t me = (uintptr_t)arg;

	CHECK_EQ(mine, 0);
	for (unsigned i = 0; i < SWITCHES; i++) {
		mine = me + i;
		errno = (int)me;
		sched_yield();
		CHECK_EQ(mine, me + i);
		CHECK_EQ(errno, me);
	}
	return arg;
}

static void run(void)
{
	pthread_t t[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, switches, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

#if defined(SYS_modify_ldt)
static void filter(void)
{
	struct sock_filter what[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_modify_ldt, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof what / sizeof *what, what };

	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), 0);
}

static void in_child(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

int main(int n, char **words)
{
	run();
	in_child();
	if (n > 1)
		return 0;
	filter();
	run();
	in_child();
	execl("/proc/self/exe", words[0], "filtered", (char *)NULL);
	return 1;
}
#else
int main(void)
{
	SKIP("no such system call on this machine");
}
#endif
