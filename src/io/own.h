/* io/own.h - copies of the program's descriptors under numbers that it does not know: a call that must outlive the number
 * that it was given, or that blocks in the kernel, goes on with one. They are close-on-exec, the child of a fork closes
 * them, and what the program closes by number leaves them alone.
 * Callers: hold, ready, posix. Calls slot, engine. */
#ifndef KBI_OWN_H
#define KBI_OWN_H

#include "io/slot.h"

/* The same file under such a number, whose one user the caller is; or a negative errno: EBADF, EMFILE (none is left),
 * ENOMEM. May wait for who closes numbers, in the kernel. */
int kbi_own_copy(int fd);
/* One more user of what the caller uses. */
void kbi_own_share(int own);
/* One less: the last one closes it. */
void kbi_own_drop(int own);
/* Is it in use as such, or the number of the runtime's memory or engine? Then it is not the program's to close. */
bool kbi_own_is(int fd);
/* The lowest of all these from `from` on; INT_MAX: none. */
int kbi_own_next(int from);
/* Where kbi_fd_may_be_ours, a number may be in the way of a copy: close it between kbi_own_stop_copies
 * and kbi_own_let_copies, and ask kbi_own_is in between. Any number of threads. */
void kbi_own_stop_copies(void);
void kbi_own_let_copies(void);

#endif
