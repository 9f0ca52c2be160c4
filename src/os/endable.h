/* os/endable.h - a system call of ours that waits, and that a handler of ours may end: a thread that waits in it can be
 * asked to look up, as in a call of libc's. Where the machine is not known it is a call like any other.
 * Callers: core/handoff, posix. */
#ifndef KBI_ENDABLE_H
#define KBI_ENDABLE_H

#include "base/base.h"

/* The kernel's result; also -EINTR, without a handler of the program's. */
long kbi_endable_call(long nr, const long a[6]);
/* Is that address in it, where a handler may interrupt the wait and all that the thread has is as before? */
bool kbi_endable_is_at(uintptr_t pc);
/* In a handler: if it has interrupted such a call, that is over when the handler returns. */
bool kbi_endable_end(void *ucontext);

#endif
