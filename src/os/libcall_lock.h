/* os/libcall_lock.h - locked memory where virtual processors are processes. The first process holds all locks: so a limit
 * (RLIMIT_MEMLOCK) counts the program's, and any thread may unlock what another one has locked. All memory is in files that
 * the processes share: what is locked in one of them stays in memory for all.
 * Callers: os/libcall_map, os/libcall_owned, core/body_process. Calls memory, maps. */
#ifndef KBI_LIBCALL_LOCK_H
#define KBI_LIBCALL_LOCK_H

#include "base/base.h"

/* mlock, mlock2, munlock, mlockall, munlockall. there: makes a call in the first process. */
long kbi_libcall_lock(long nr, const long arg[6], long (*there)(long nr, const long arg[6]));
/* New memory: locked, if all that is new is to be (MCL_FUTURE). touch: it is made now. 0, or -errno: it may not be. */
long kbi_libcall_lock_new(uintptr_t at, size_t bytes, bool touch);
/* Memory that goes back. */
void kbi_libcall_lock_gone(uintptr_t at, size_t bytes);
/* Before there are processes: this is locked. And when its memory has become shared: it is so again. */
void kbi_libcall_lock_note(uintptr_t from, uintptr_t to);
void kbi_libcall_lock_again(void);

#endif
