/* core/process: where virtual processors cannot be processes, because libc's code is to be
 * written to and may not be, or the system has no processes left, a message says so, nothing is
 * left behind, and the program goes on as a single process.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <kochab/kochab.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "core/child.h"
#include "core/refusals.h"

enum { VPS = 4, PLACE = 1 << 16 };

static volatile int handled, shared;

static void on_signal(int sig)
{
	handled = sig;
}

static void handles_signals(void)
{
	struct itimerval soon = { .it_value.tv_usec = 1000 };
	struct sigaction trap;

	CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(handled, SIGUSR1);
	CHECK(signal(SIGALRM, on_signal) != SIG_ERR);
	CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
	while (handled != SIGALRM)
		usleep(1000);
	CHECK_EQ(sigaction(SIGTRAP, NULL, &trap), 0);
	CHECK(trap.sa_handler == SIG_DFL);
}

/* The child's own memory, which it writes to. */
static void has_children(void)
{
	int status;
	pid_t pid;

	CHECK_EQ(waitpid(-1, &status, WNOHANG), -1);
	CHECK_EQ(errno, ECHILD);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		shared = 1;
		_exit(7);
	}
	CHECK_EQ(waitpid(-1, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK_EQ(shared, 0);
	CHECK_EQ(system("exit 3"), 3 << 8);
}

static void has_memory(void)
{
	char *p = mmap(NULL, PLACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		*q = malloc(PLACE);

	CHECK(p != MAP_FAILED && q);
	memset(p, 1, PLACE);
	memset(q, 2, PLACE);
	CHECK_EQ(mprotect(p, PLACE, PROT_READ), 0);
	CHECK(p[PLACE - 1] == 1 && q[PLACE - 1] == 2);
	free(q);
	CHECK_EQ(munmap(p, PLACE), 0);
}

static void goes_on(void)
{
	handles_signals();
	has_memory();
	has_children();
}

static void with_processes(void)
{
	setenv("KOCHAB_BODY", "process", 1);
	setenv("KOCHAB_VPS", "4", 1);
}

static void usable(void *arg)
{
	(void)arg;
	with_processes();
	_exit(kb_init() ? CHILD_CANNOT : 0);
}

/* ---- code that may not be written to --------------------------------------------------------- */

static void code_is_fixed(void *arg)
{
	(void)arg;
	if (!refuse_new_code())
		exit(CHILD_CANNOT);
	with_processes();
	setenv("KOCHAB_LIBCALLS", "patch", 1);
	CHECK_EQ(kb_init(), ENOTSUP);
	goes_on();
	CHECK_EQ(kb_init(), ENOTSUP);
	exit(21);
}

/* ---- no processes left ----------------------------------------------------------------------- */

static uid_t nobody;

static void become_nobody(void)
{
	if (!become(nobody))
		exit(CHILD_CANNOT);
}

static void no_processes(void *limit)
{
	become_nobody();
	allow_processes(*(rlim_t *)limit);
	with_processes();
	CHECK_EQ(kb_init(), EAGAIN);
	allow_processes(MANY);
	goes_on();
	exit(22);
}

/* Returns true if that user has no process but the caller: then there is room for a single further
 * process. */
static void looks(void *arg)
{
	struct rlimit two = { 2, 2 };
	pid_t pid = -1;

	(void)arg;
	become_nobody();
	CHECK_EQ(setrlimit(RLIMIT_NPROC, &two), 0);
	for (int i = 0; i < 10000 && pid < 0; i++) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		usleep(1000);
	}
	exit(pid > 0 ? 23 : 1);
}

int main(void)
{
	static struct child c;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("not with sanitizers");
#endif
	if (!child_does(&c, usable, NULL, 0))
		SKIP("no process bodies here");
	if (child_does(&c, code_is_fixed, NULL, 21))
		child_said(&c, "libc's code cannot be changed");
	nobody = nobody_of(getpid());
	for (rlim_t limit = 1; limit <= VPS; limit++) {
		if (!child_does(&c, no_processes, &limit, 22))
			break;
		if (limit == VPS)
			child_said(&c, "no processes left");
		child_does(&c, looks, NULL, 23);
	}
	return 0;
}
