/* core/dump.h - prints every thread with its state, and the backtraces of waiting threads.
 * Callers: boot, api, posix. */
#ifndef KBI_DUMP_H
#define KBI_DUMP_H

#include <signal.h>

#include "base/base.h"

/* Has SIGQUIT print all threads, if the option dump_on_quit is set and the program's action for it
 * is the default; and the signal of `kochab dump`. A child of fork has neither. */
void kbi_dump_setup(void);
/* Returns true if the action is ours, which prints all threads. A function that shows a program its
 * actions shows SIGQUIT's default then, which ends the program. */
bool kbi_dump_is_action(const struct sigaction *sa);
/* Reports a deadlock and prints all threads, if no other kernel thread exists that could wake a
 * thread and the program has no handler (which may post a semaphore). If a thread was lost that may
 * have been meant to wake the rest, the program ends then, whatever handlers it has. Returns false
 * if nothing was printed. */
bool kbi_dump_deadlock(void);
/* Prints all threads to a descriptor; no malloc, no stdio locks: fit for a signal handler. */
void kbi_dump(int fd);

#endif
