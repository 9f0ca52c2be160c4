/* libc/emulate_lock.h - locked memory where virtual processors are processes. The first process
 * holds all locks: so a limit (RLIMIT_MEMLOCK) counts the program's, and any thread may unlock
 * memory that another thread has locked. All memory is in files that the processes share: memory
 * locked by a process stays resident for all.
 * Callers: libc/emulate_map, libc/emulate_owned, core/process. Calls os/memory, os/maps. No lock of
 * its own; no switch. */
#ifndef KBI_EMULATE_LOCK_H
#define KBI_EMULATE_LOCK_H

#include "base/base.h"

/* Makes mlock, mlock2, munlock, mlockall, munlockall. there: makes a call in the first process.
 * Returns its answer. */
long kbi_emulate_lock(long nr, const long arg[6], long (*there)(long nr, const long arg[6]));
/* Locks new memory if the program has asked for that (MCL_FUTURE). touch: pages are made now.
 * Returns 0, or -EAGAIN: not permitted. */
long kbi_emulate_lock_new(uintptr_t at, size_t bytes, bool touch);
/* Unlocks memory that goes back to the space. */
void kbi_emulate_lock_gone(uintptr_t at, size_t bytes);
/* Before there are processes: notes a locked range. Again: locks the noted ranges when their memory
 * has become shared. */
void kbi_emulate_lock_note(uintptr_t from, uintptr_t to);
void kbi_emulate_lock_again(void);

#endif
