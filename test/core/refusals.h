/* refusals.h - a system that refuses what the runtime wants: code that may not be written to, no processes left. */
#ifndef KB_TEST_REFUSALS_H
#define KB_TEST_REFUSALS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* Code of the caller's process may not be written to from here on; false: the kernel is older than Linux 6.3. */
static inline int refuse_new_code(void)
{
	return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0;
}

/* A user whom nobody else is, while pid runs. */
static inline uid_t nobody_of(pid_t pid)
{
	return 1000000 + (uid_t)pid;
}

/* False: the caller is not root, or in a name space without that one. */
static inline int become(uid_t user)
{
	return setresuid(user, user, user) == 0;
}

enum { MANY = 1000 };

/* How many processes that user may have, MANY at most. */
static inline void allow_processes(rlim_t n)
{
	struct rlimit l = { n, MANY };

	CHECK_EQ(setrlimit(RLIMIT_NPROC, &l), 0);
}

#endif
