/* core/dump.h - last words: every thread with its state and the backtrace of parked ones. */
#ifndef KBI_DUMP_H
#define KBI_DUMP_H

#include <signal.h>

#include "base/base.h"

/* SIGQUIT prints all threads, if the option says so and the signal's action for the program is the default; and so does the
 * signal of `kochab dump`. A child of fork has neither. */
void kbi_dump_setup(void);
/* Is it the action that prints all threads? A function that shows a program its actions shows SIGQUIT's default then, which
 * ends the program. */
bool kbi_dump_is_action(const struct sigaction *sa);
/* All threads wait for each other: says so and prints them, if no other kernel thread exists that could wake one and
 * no handler of the program (which may post a semaphore). If a thread was lost that may have been meant to, the program
 * ends then, whatever handlers it has. False: said nothing. */
bool kbi_dump_deadlock(void);
/* Writes to a descriptor; no malloc, no stdio locks: fit for a signal handler. */
void kbi_dump(int fd);

#endif
