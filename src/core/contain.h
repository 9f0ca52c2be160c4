/* core/contain.h - a thread that crashes is lost, and the program goes on: its joiner is told EOWNERDEAD, what it held of
 * libc's is given back. Where that is sound, and what ends the program: doc/containment.md.
 * Callers: boot, dump, sync/waitq, sync/mutex, posix's signals. Calls thread, handoff, preempt. */
#ifndef KBI_CONTAIN_H
#define KBI_CONTAIN_H

#include "core/descriptor.h"

/* Can a thread be lost? Constant once threads run. */
extern KBI_HIDDEN bool kbi_contain_on;
/* void (*)(struct kb_thread *lost): what others wait for is given up. Called in the place of a thread that was lost. */
extern KBI_HIDDEN aptr kbi_contain_gives_up;

/* Handlers for faults, if the option says so. Once, at start. */
void kbi_contain_setup(void);
/* The handler of this signal is ours, unless the program has set one since. */
bool kbi_contain_handles(int sig);
/* So many threads were lost. */
unsigned kbi_contain_lost(void);
/* Nobody but the library cares for those that were lost: the program ends when all others wait (option on_crash). */
bool kbi_contain_ends_deadlock(void);
/* The caller has waited at an object until its time was over. Where a thread is lost and nothing else happens any more,
 * a message says so, once: the other threads look repeatedly for an event that perhaps the lost thread was to cause. */
void kbi_contain_waited_in_vain(struct kbi_task *self);

#endif
