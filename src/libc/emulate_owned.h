/* libc/emulate_owned.h - system calls about things that the kernel keeps with an address space or a
 * process, where virtual processors are processes: a program's memory is in several. Each such call
 * is made in every process, or by the first process for the program, or refused with a message and
 * the errno of a kernel that lacks it. None is made for a single process without a message.
 * Callers: libc/emulate; libc/intercept_wanted for the numbers. Calls broadcast, os/memory_marks,
 * emulate_map. No switch. */
#ifndef KBI_EMULATE_OWNED_H
#define KBI_EMULATE_OWNED_H

#include "base/base.h"

#include "os/newer.h"

/* Returns true if the call is one of them. Some belong to them only with some arguments. */
static inline bool kbi_emulate_is_owned(long nr)
{
	switch (nr) {
	case SYS_signalfd4: case SYS_io_setup: case SYS_userfaultfd: case SYS_pkey_alloc:
	case SYS_pkey_mprotect: case SYS_membarrier: case SYS_prctl: case SYS_remap_file_pages:
	case SYS_mlock: case SYS_mlock2: case SYS_munlock: case SYS_mlockall: case SYS_munlockall:
	case SYS_io_uring_setup: case SYS_process_madvise: case SYS_mseal: case SYS_setuid:
	case SYS_setgid: case SYS_setreuid: case SYS_setregid: case SYS_setresuid: case SYS_setresgid:
	case SYS_setfsuid: case SYS_setfsgid: case SYS_capset:
		return true;
	default:
		return false;
	}
}

typedef long kbi_emulate_maker(long nr, const long arg[6]);

/* Makes the call if it needs this. Returns true: *r is the answer. there: makes a call in the
 * program's first process. */
bool kbi_emulate_owned(long nr, const long a[6], kbi_emulate_maker *there, long *r);
/* Before there are processes: returns why the program could not go on, because it has something
 * that belongs to a single address space; NULL: nothing. Notes memory that children must not have,
 * or get zeroed (os/memory_marks). */
const char *kbi_emulate_owned_before(void);

#endif
