/* posix/naming.h - thread names that a program writes into the file `comm` of a thread. The kernel
 * has no such file for a lightweight thread: the program gets a memory file instead, and every
 * question about the name looks into that file first.
 * Callers: posix/thread_attrs, posix/proc, posix/thread. Takes a lock that no handler interrupts.
 * Never switches. */
#ifndef KBI_NAMING_H
#define KBI_NAMING_H

#include "posix/posix.h"

/* Returns a descriptor of a new file; text written into it becomes the name of this thread only.
 * Negative: an errno. Maps memory. */
int kbi_naming_file(struct kbi_signal_to whom);
/* Gives t the name that was written last into any of its files, if a name was written. */
void kbi_naming_take(struct kb_thread *t);
/* Closes the files of the calling thread, which ends. */
void kbi_naming_thread_ends(void);

#endif
