/* refusals.h - makes a system that refuses resources of the runtime's: code may not be written to,
 * no processes are left. */
#ifndef KB_TEST_REFUSALS_H
#define KB_TEST_REFUSALS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* Forbids writes to code of the caller's process from here on. Returns false if the kernel is older
 * than Linux 6.3. */
static inline int refuse_new_code(void)
{
	return prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0;
}

/* Removes Syscall User Dispatch, as before Linux 5.11. Returns false if the kernel has no seccomp
 * filters. */
static inline int refuse_dispatch(void)
{
	enum { DISPATCH = 59 };
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, DISPATCH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof f / sizeof *f, f };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Returns a user that has no process, while pid runs. */
static inline uid_t nobody_of(pid_t pid)
{
	return 1000000 + (uid_t)pid;
}

/* Returns false if the caller is not root, or is in a name space without that user. */
static inline int become(uid_t user)
{
	return setresuid(user, user, user) == 0;
}

enum { MANY = 1000 };

/* Limits the processes that user may have, MANY at most. */
static inline void allow_processes(rlim_t n)
{
	struct rlimit l = { n, MANY };

	CHECK_EQ(setrlimit(RLIMIT_NPROC, &l), 0);
}

#endif
