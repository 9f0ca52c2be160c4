/* core/process_birth: with the option on_kill=spare the processes of a program are killed while its
 * threads have the supervisor make children, with a copy of the memory and with the memory itself.
 * Each child is made once, has the earlier contents of memory, and ends as it is meant to, unless
 * the killer took it for a virtual processor.
 * matrix: none
 * body: thread (it chooses by itself) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <spawn.h>
#include <sys/wait.h>

#include "core/killed.h"

extern char **environ;

static void ends(pid_t pid, int with)
{
	int status;

	CHECK(pid > 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		CHECK_EQ(status, with << 8);
}

static pid_t copies(const unsigned *n, unsigned now)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(*n == now ? 3 : 4);
	return pid;
}

static pid_t shares(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(5);
	return pid;
}

static void *makes(void *arg)
{
	char *const words[] = { (char *)"true", NULL };
	unsigned *n = malloc(sizeof *n);
	pid_t pid;

	for (*n = 0; !killed_is_over(); ++*n) {
		ends(copies(n, *n), 3);
		ends(shares(), 5);
		CHECK_EQ(posix_spawnp(&pid, "true", NULL, NULL, words, environ), 0);
		ends(pid, 0);
		kb_yield();
	}
	free(n);
	return arg;
}

static void nap(void)
{
	kb_sleep(2000000);
}

int main(void)
{
	struct killed k = { .thread = makes, .threads = 3, .kills = 25, .pause = nap };

	setenv("KOCHAB_LIBCALLS", "seccomp", 1);
	return killed_run(&k);
}
