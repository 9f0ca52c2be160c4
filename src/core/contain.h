/* core/contain.h - a thread that crashes is lost, and the program goes on: its joiner gets
 * EOWNERDEAD, and locks and memory of libc's that it held are given back. Where that is sound, and
 * what ends the program: doc/containment.md.
 * Callers: boot, dump, sync/waitq, sync/mutex, posix's signals. Calls thread, handoff, preempt. */
#ifndef KBI_CONTAIN_H
#define KBI_CONTAIN_H

#include "core/descriptor.h"

/* True: a thread can be lost. Constant once threads run. */
extern KBI_HIDDEN bool kbi_contain_on;
/* void (*)(struct kb_thread *lost): gives up the objects that other threads wait for. Called in the
 * place of a lost thread. */
extern KBI_HIDDEN aptr kbi_contain_gives_up;

/* Installs handlers for faults, if the option contain is set. Once, at start. */
void kbi_contain_setup(void);
/* Returns true if the handler of this signal is ours, unless the program has set a handler
 * since. */
bool kbi_contain_handles(int sig);
/* Returns the number of lost threads. */
unsigned kbi_contain_lost(void);
/* Returns true if only the library handles lost threads: then the program ends when all threads
 * wait (option on_crash). */
bool kbi_contain_ends_deadlock(void);
/* Notes that the caller's wait at an object has timed out. If a thread is lost and nothing else
 * happens any more, a message is printed, once: the waiting threads look repeatedly for an event
 * that perhaps only the lost thread could cause. */
void kbi_contain_waited_in_vain(struct kbi_task *self);

#endif
