/* core/process_children, core/supervisor: a thread that waits for any child hears of it though a process
 * of the runtime's was stopped and continued from outside, which the kernel reports to the same
 * parent. The supervisor answers meanwhile.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "core/child.h"
#include "core/children.h"

/* Stays until it is killed. */
static pid_t child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static char state(int pid)
{
	char path[64], text[256], *at;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	CHECK(reads(path, text, sizeof text));
	at = strrchr(text, ')');
	CHECK(at);
	return at[2];
}

/* Returns a process of the runtime's that is not the caller's. */
static int another(const pid_t *own, unsigned n)
{
	int list[64], me = (int)syscall(SYS_gettid);
	unsigned all = children_of(getpid(), list, 64);

	for (unsigned i = 0; i < all; i++)
		if (list[i] != me && !is_known(own, n, list[i]))
			return list[i];
	return 0;
}

static void ends(pid_t pid, int options)
{
	int status;

	CHECK_EQ(waitpid(-1, NULL, WNOHANG | options), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(-1, &status, options), pid);
	CHECK(WIFSIGNALED(status));
}

static void *nothing(void *arg)
{
	return arg;
}

static void program(void *unused)
{
	const int all = WUNTRACED | WCONTINUED;
	pid_t own[3];
	kb_thread_t t;
	int other;

	(void)unused;
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "2", 1);
	if (kb_init() != 0)
		_exit(CHILD_CANNOT);
	CHECK_EQ(kb_thread_create(&t, NULL, nothing, NULL), 0);
	CHECK_EQ(kb_thread_join(t, NULL), 0);
	for (int i = 0; i < 3; i++)
		own[i] = child();
	other = another(own, 3);
	CHECK(other);
	usleep(50000); /* it sleeps by now, and holds no lock */
	CHECK_EQ(kill(other, SIGSTOP), 0);
	while (state(other) != 'T')
		;
	ends(own[0], 0);
	ends(own[1], all);
	CHECK_EQ(kill(other, SIGCONT), 0);
	ends(own[2], all);
	CHECK_EQ(waitpid(-1, NULL, all), -1);
	CHECK_EQ(errno, ECHILD);
}

int main(void)
{
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	if (!child_does(&c, program, NULL, 0))
		SKIP("no process bodies here");
	return 0;
}
