/* test/posix/spares.h - the same test once more, as a program that has hardly any kernel threads to
 * spare for threads that block: other kernel threads wait in their place then, or they look now and
 * then. */
#ifndef TEST_SPARES_H
#define TEST_SPARES_H

#include "test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beside this program, before there are threads. 0: this is the second program. */
static inline pid_t begin_with_few_spares(char **argv)
{
	pid_t pid;

	if (getenv("KOCHAB_SPARES"))
		return 0;
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		setenv("KOCHAB_SPARES", "4", 1);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	return pid;
}

static inline void end_with_few_spares(pid_t pid)
{
	int status;

	CHECK(!pid || (waitpid(pid, &status, 0) == pid && status == 0));
}

#endif
