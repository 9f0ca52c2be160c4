/* core/body_stack.h - stacks of processes that are virtual processors, each with a TLS block. Callers: body_process. */
#ifndef KBI_BODY_STACK_H
#define KBI_BODY_STACK_H

#include <stdbool.h>

struct kbi_stack;

/* One, and so many more are kept, and some: of those the supervisor takes, who makes none. NULL: there is no memory. */
struct kbi_stack *kbi_body_stack_take(unsigned more);
/* Its process has ended. By the supervisor, too: without a lock that others hold, perhaps while they stand still. */
void kbi_body_stack_put(struct kbi_stack *s);

/* How many are kept; one more is, which may wait for libc's locks. False: none, or another thread is at it. */
unsigned kbi_body_stack_kept(void);
bool kbi_body_stack_add(void);

#endif
