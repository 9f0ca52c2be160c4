/* core/stock.h - kernel threads that can be had at any time. The part of making a kernel thread
 * that takes locks of libc, the loader or the program's allocator, a control block with TLS, is
 * done ahead; starting a kernel thread on a block is then a system call. So a thread that holds
 * such a lock, and waits for something that only a further kernel thread can bring about, does get
 * that kernel thread. Only for kernel threads, and for blocks that are copies: elsewhere the stock
 * is empty.
 * Callers: worker_thread, worker_maker, handoff, lending, posix. */
#ifndef KBI_STOCK_H
#define KBI_STOCK_H

#include "base/base.h"

/* Returns true if the stock holds fewer than its target: a minimum, or as many as there have been
 * threads, up to a limit. */
bool kbi_stock_is_low(void);
/* Makes a block for the stock; may wait for any of those locks. Returns false if that cannot be
 * done. */
bool kbi_stock_add(void);
/* Starts a detached kernel thread that runs fn(arg) on a stack for an agent, with the caller's
 * signal mask. Returns false if the stock is empty. Takes no lock but its own. */
bool kbi_stock_start(void *(*fn)(void *), void *arg);
/* Fills the stock before there is a further thread; called by its creator, which may wait for these
 * locks anyway. */
static inline void kbi_stock_keep_up(void)
{
	if (kbi_unlikely(kbi_stock_is_low()))
		kbi_stock_add();
}
/* Empties the stock in the child of fork. */
void kbi_stock_after_fork(void);

#endif
