/* posix/naming.h - names that are written into a thread's file `comm`. The kernel has none for a lightweight thread: the
 * program gets a file of memory, and who asks for the name looks there first.
 * Callers: posix/about, posix/proc, posix/thread. Never switches. */
#ifndef KBI_NAMING_H
#define KBI_NAMING_H

#include "posix/posix.h"

/* A descriptor of a file; what is written into it names this thread, and no other. Negative: an errno. Maps memory. */
int kbi_naming_file(struct kbi_signal_to whom);
/* t has the name that was written last, if one was. */
void kbi_naming_take(struct kb_thread *t);
/* The calling thread ends. */
void kbi_naming_thread_ends(void);

#endif
