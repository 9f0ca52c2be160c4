/* core/stock.h - kernel threads that can be had at any time. What takes libc's locks, the loader's or those of the
 * program's allocator, the making of a control block with TLS, is done ahead; to start a kernel thread on one is a
 * system call. So whoever holds such a lock and waits for something that a further kernel thread is to bring about
 * does get it. Callers: body_thread, nursery, handoff. Kernel threads only, and blocks as copies: elsewhere the stock
 * is empty. */
#ifndef KBI_STOCK_H
#define KBI_STOCK_H

#include "base/base.h"

/* Fewer are kept than it may come to: some, and as many as there have been threads, up to a limit. */
bool kbi_stock_is_low(void);
/* Makes one more; may wait for any of those locks. False: it cannot be done. */
bool kbi_stock_add(void);
/* A detached kernel thread runs fn(arg) on a stack for an agent, with the caller's signal mask. False: none is left.
 * Takes no lock but its own. */
bool kbi_stock_start(void *(*fn)(void *), void *arg);
/* Before there is one thread more, by its creator, who may wait for these locks anyway. */
static inline void kbi_stock_keep_up(void)
{
	if (kbi_unlikely(kbi_stock_is_low()))
		kbi_stock_add();
}
/* In the child of fork. */
void kbi_stock_after_fork(void);

#endif
