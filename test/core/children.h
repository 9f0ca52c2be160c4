/* children.h - the children of another process, as /proc has them; whether they may be traced, and
 * how they end. */
#ifndef KB_TEST_CHILDREN_H
#define KB_TEST_CHILDREN_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/child.h"

/* Reads a file, as far as there is room. */
static inline int reads(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t size;

	if (fd < 0)
		return 0;
	size = read(fd, text, room - 1);
	close(fd);
	text[size > 0 ? size : 0] = 0;
	return 1;
}

static inline unsigned children_of(pid_t pid, int *list, unsigned most)
{
	char path[64], text[8192];
	unsigned n = 0;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	if (!reads(path, text, sizeof text))
		return 0;
	for (char *p = text, *end; n < most; p = end) {
		long v = strtol(p, &end, 10);

		if (end == p)
			break;
		list[n++] = (int)v;
	}
	return n;
}

/* A child that has ended, and that its parent has not yet seen, is on the list, too. */
static inline int is_dead(int pid)
{
	char path[64], text[256];
	char *at;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if (!reads(path, text, sizeof text))
		return 1;
	at = strrchr(text, ')');
	return !at || at[2] == 'Z' || at[2] == 'X';
}

/* A container may forbid it. */
static inline int may_trace(void)
{
	pid_t pid = fork();
	int may;

	if (!pid)
		for (;;)
			pause();
	if (pid < 0)
		return 0;
	may = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return may;
}

/* Before Linux 6.0 a process that is killed while a signal stops it may end unseen, without its
 * registers: so the program ends, with a message (doc/containment.md). */
static inline int ended_unseen(const struct child *c)
{
	struct utsname u;

	return uname(&u) == 0 && atoi(u.release) < 6 && !c->late && WIFSIGNALED(c->status) &&
	       WTERMSIG(c->status) == SIGKILL &&
	       strstr(c->text, "was killed: the program ends") != NULL;
}

#define UNSEEN "before Linux 6.0: a kill came unseen, and the program said so and ended"

static inline int is_known(const int *list, unsigned n, int pid)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == pid)
			return 1;
	return 0;
}

#endif
