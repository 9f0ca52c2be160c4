/* core/process_stack.h - stacks of processes that are virtual processors, each with a TLS block.
 * Callers: process, worker_thread, stock. */
#ifndef KBI_PROCESS_STACK_H
#define KBI_PROCESS_STACK_H

#include <stdbool.h>

struct kbi_stack;

/* Takes a stack; keeps `more` in reserve, and some for the supervisor, which must not allocate.
 * NULL: there is no memory. */
struct kbi_stack *kbi_process_stack_take(unsigned more);
/* Gives back a stack when its process has ended. The supervisor calls it, too: it takes no lock,
 * which another process might hold while it stands still. */
void kbi_process_stack_put(struct kbi_stack *s);

/* Returns how many stacks are kept. */
/* Adds a stack to them; may wait for libc's locks. Returns false if there is no memory, or another
 * thread adds, or in the supervisor. */
unsigned kbi_process_stack_kept(void);
bool kbi_process_stack_add(void);

#endif
