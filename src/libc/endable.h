/* libc/endable.h - a waiting system call of ours that a handler of ours can end: a thread that
 * waits in it can be made to return, as from a call of libc's. On unknown machines it is a plain
 * system call.
 * Callers: core/handoff, posix. */
#ifndef KBI_ENDABLE_H
#define KBI_ENDABLE_H

#include "base/base.h"

/* Makes system call nr. Returns the kernel's result; also -EINTR, without a handler of the
 * program's. */
long kbi_endable_call(long nr, const long a[6]);
/* Returns true if that address is at or behind the system call instruction: a handler may interrupt
 * the wait there, and the state of the thread is unchanged. */
bool kbi_endable_is_at(uintptr_t pc);
/* Call in a handler: if the handler has interrupted such a call, the call ends when the handler
 * returns. Returns true in that case. */
bool kbi_endable_end(void *ucontext);

#endif
