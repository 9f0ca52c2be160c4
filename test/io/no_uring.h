/* no_uring.h - io_uring is forbidden, as in many containers: by a filter of system calls. */
#ifndef KB_TEST_NO_URING_H
#define KB_TEST_NO_URING_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

/* Forbids io_uring to this process, for good. False: filters are not possible here. */
static inline bool forbid_uring(void)
{
	struct sock_filter f[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 425 }, /* io_uring_setup */
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	struct sock_fprog p = { sizeof f / sizeof *f, f };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

#endif
