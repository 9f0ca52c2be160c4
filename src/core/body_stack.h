/* core/body_stack.h - stacks of processes that are virtual processors, each with a TLS block. Callers: body_process. */
#ifndef KBI_BODY_STACK_H
#define KBI_BODY_STACK_H

struct kbi_stack;

/* One, and so many more are kept, and some: of those the supervisor takes, who makes none. NULL: there is no memory. */
struct kbi_stack *kbi_body_stack_take(unsigned more);
/* Its process has ended. By the supervisor, too: without a lock that others hold, perhaps while they stand still. */
void kbi_body_stack_put(struct kbi_stack *s);

#endif
