/* core/dump.h - last words: every thread with its state and the backtrace of parked ones. */
#ifndef KBI_DUMP_H
#define KBI_DUMP_H

#include <signal.h>

#include "base/base.h"

/* SIGQUIT prints all threads, if the option says so and does to the program what it does by default; and so does what
 * `kochab dump` sends. A child of fork has neither. */
void kbi_dump_setup(void);
/* For who shows a program its actions: does SIGQUIT's do that, which by default ends the program? */
bool kbi_dump_is_action(const struct sigaction *sa);
/* All threads wait for each other: says so and prints them, if no other kernel thread exists that could wake one and
 * no handler of the program (which may post a semaphore). If a thread was lost that may have been meant to, the program
 * ends then, whatever handlers it has. False: said nothing. */
bool kbi_dump_deadlock(void);
/* Writes to a descriptor; no malloc, no stdio locks: fit for a signal handler. */
void kbi_dump(int fd);

#endif
