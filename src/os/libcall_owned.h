/* os/libcall_owned.h - system calls about what the kernel keeps with one address space or one process, where virtual
 * processors are processes: a program's memory is in several. Each is made in every process, or by the first process for
 * the program, or refused with a line as a kernel without it refuses it; none is made for one process in silence.
 * Caller: os/libcall; the numbers are for os/libsite, too. Calls everywhere, memory_marks, libcall_map. */
#ifndef KBI_LIBCALL_OWNED_H
#define KBI_LIBCALL_OWNED_H

#include "base/base.h"

#include "os/newer.h"

/* Is it such a call? Some are only with some arguments. */
static inline bool kbi_libcall_is_owned(long nr)
{
	switch (nr) {
	case SYS_signalfd4: case SYS_io_setup: case SYS_userfaultfd: case SYS_pkey_alloc: case SYS_pkey_mprotect:
	case SYS_membarrier: case SYS_prctl: case SYS_remap_file_pages: case SYS_mlock: case SYS_mlock2: case SYS_munlock:
	case SYS_mlockall: case SYS_munlockall: case SYS_io_uring_setup: case SYS_process_madvise:
	case SYS_mseal: case SYS_setuid: case SYS_setgid: case SYS_setreuid: case SYS_setregid: case SYS_setresuid:
	case SYS_setresgid: case SYS_setfsuid: case SYS_setfsgid: case SYS_capset:
		return true;
	default:
		return false;
	}
}

typedef long kbi_libcall_maker(long nr, const long arg[6]);

/* True: *r is the answer. there: makes a call in the program's first process. */
bool kbi_libcall_owned(long nr, const long a[6], kbi_libcall_maker *there, long *r);
/* Before there are processes: what the program has that belongs to one address space, so that it could not be used; NULL:
 * nothing. Memory that children are not to have, or are to have zeroed, is noted (os/memory_marks). */
const char *kbi_libcall_owned_before(void);

#endif
