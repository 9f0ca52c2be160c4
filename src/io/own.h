/* io/own.h - copies of the program's descriptors under numbers that the program does not know: a
 * call that must outlive its number, or that blocks in the kernel, goes on with such a copy. Copies
 * are close-on-exec, the child of a fork closes them, and closes by number leave them alone.
 * Callers: call, file, hold, posix. Calls slot, engine. May wait in a futex, never switches. */
#ifndef KBI_OWN_H
#define KBI_OWN_H

#include "io/slot.h"

/* Copies the descriptor to such a number, with the caller as its one user. Returns the number,
 * or a negative errno: EBADF, EMFILE (none is left), ENOMEM. May wait in the kernel for a
 * thread that closes numbers. */
int kbi_own_copy(int fd);
/* Adds a user to a copy that the caller uses. */
void kbi_own_share(int own);
/* Removes a user; the last user closes the copy. */
void kbi_own_drop(int own);
/* Returns whether fd is a copy in use, or a number of the runtime's memory or engine: then the
 * program must not close it. */
bool kbi_own_is(int fd);
/* Returns the lowest of all these numbers from `from` on; INT_MAX: none. */
int kbi_own_next(int from);
/* Where kbi_fd_may_be_ours, a number may be in the way of a copy: close it between
 * kbi_own_stop_copies and kbi_own_let_copies, and call kbi_own_is in between. Any number of threads
 * may do so at once. */
void kbi_own_stop_copies(void);
void kbi_own_let_copies(void);

#endif
