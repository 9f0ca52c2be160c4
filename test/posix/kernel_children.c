/* Effects that depend on the kernel thread that made a child: who may trace a child that asks for
 * it, with fork and with vfork, and the signal that the child gets when its maker ends
 * (PR_SET_PDEATHSIG). Threads wait in between, so that another kernel thread would run them: even a
 * kernel thread that is no longer needed must not end then.
 * matrix: vps=1,2 sched=rotator,steal */
#define _GNU_SOURCE
#include "crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 8 };

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static char path[] = "/tmp/kochab-kernel-children.XXXXXX";

/* Lets further threads run, on any kernel threads. */
static void mix(void)
{
	for (int i = 0; i < 5; i++) {
		pthread_mutex_lock(&m);
		sched_yield();
		pthread_mutex_unlock(&m);
		usleep(100);
	}
}

static pid_t by_fork(void)
{
	pid_t child = fork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(7);
	}
	return child;
}

static pid_t by_vfork(void)
{
	static char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 7", NULL };
	pid_t child = vfork();

	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execv("/bin/sh", argv);
		_exit(126);
	}
	return child;
}

/* False: tracing is not allowed here. */
static int trace(pid_t child)
{
	int status = 0;

	CHECK(child > 0);
	mix();
	CHECK_EQ(waitpid(child, &status, 0), child);
	if (!WIFSTOPPED(status))
		return 0;
	mix();
	if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0) {
		int e = errno;

		kill(child, SIGKILL); /* otherwise it would keep the test's output open */
		CHECK_EQ(e, 0);
	}
	mix();
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return 1;
}

static void *traces(void *arg)
{
	int may = 1;

	for (int i = 0; i < ROUNDS && may; i++)
		may = trace(i % 2 ? by_vfork() : by_fork());
	return arg;
}

/* Blocks in the kernel for a while: its virtual processor gets another kernel thread, and this
 * kernel thread becomes an idle worker. */
static void block(void)
{
	int mine = open(path, O_RDWR | O_CLOEXEC), theirs = open(path, O_RDWR | O_CLOEXEC), status;
	pid_t child;

	CHECK(mine >= 0 && theirs >= 0);
	CHECK_EQ(flock(theirs, LOCK_EX), 0);
	child = fork();
	if (child == 0) {
		usleep(60000);
		flock(theirs, LOCK_UN);
		_exit(0);
	}
	CHECK_EQ(flock(mine, LOCK_EX), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	close(mine);
	close(theirs);
}

static void *outlives(void *arg)
{
	pid_t child[ROUNDS / 2];
	int status;

	for (int i = 0; i < ROUNDS / 2; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			usleep(1000000);
			_exit(3);
		}
		block();
	}
	for (int i = 0; i < ROUNDS / 2; i++) {
		CHECK_EQ(waitpid(child[i], &status, 0), child[i]);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int fd;

	(void)argc;
	/* read before main */
	if (!getenv("KOCHAB_SPARE_MS")) {
		setenv("KOCHAB_SPARE_MS", "50", 1);
		execv("/proc/self/exe", argv);
	}
	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	crowd_run(traces, THREADS);
	crowd_run(outlives, 1);
	unlink(path);
	return 0;
}
