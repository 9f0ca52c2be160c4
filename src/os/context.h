/* os/context.h - what a signal handler may ask of the context it has interrupted.
 * Callers: posix. Runs in handlers. */
#ifndef KBI_CONTEXT_H
#define KBI_CONTEXT_H

#include "base/base.h"

/* The interrupted instruction's address; 0: this machine's layout is not known here. */
uintptr_t kbi_context_at(const void *ucontext);
/* Is the address in the code of the library (or program) that this is linked into? */
bool kbi_context_is_ours(uintptr_t at);
/* Another library's code is to count as ours: its ELF header. One; before handlers run. */
void kbi_context_add(const void *ehdr);
const void *kbi_context_added(void);

#endif
