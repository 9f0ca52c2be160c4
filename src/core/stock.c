/* core/stock.c - control blocks for kernel threads, made ahead. Contract in stock.h. Blocks are used again and again:
 * a kernel thread at its end makes its block as new, and the kernel says when nobody is on the stack any more
 * (tcb.alive). Runs on any stack; the blocks' kernel threads on theirs. */
#include "core/stock.h"

#include <sys/mman.h>

#include "core/body.h"
#include "core/body_stack.h"
#include "core/descriptor.h"
#include "os/lock.h"
#include "os/sys.h"
#include "os/tcb.h"

enum { LEAST = 8, MOST = 64 /* that are kept; and that there may be: */, BLOCKS = 512 };

static struct block {
	struct kbi_tcb tcb;
	/* under the lock */
	struct block *next;
	/* of who starts it, then its own */
	void *(*fn)(void *);
	void *arg;
} blocks[BLOCKS];

static struct {
	a32 lock;
	/* under the lock */
	struct block *unused;
	a32 n;    /* of them */
	a32 made; /* by any thread; BLOCKS and more: no further ones */
} stock;

bool kbi_stock_is_low(void)
{
	uint32_t threads = kbi_descriptor_limit(), target = threads < LEAST ? LEAST : threads > MOST ? MOST : threads;

	if (kbi_sys_from.processes)
		return kbi_body_stack_kept() < target;
	return a_load_rlx(&stock.n) < target && a_load_rlx(&stock.made) < BLOCKS && kbi_tcb_available &&
	       kbi_tcb_mode() == KBI_TCB_TEMPLATE;
}

static void put(struct block *b)
{
	kbi_lock_take(&stock.lock);
	b->next = stock.unused;
	stock.unused = b;
	a_add_rlx(&stock.n, 1);
	kbi_lock_leave(&stock.lock);
}

/* One that nobody stands on any more. */
static struct block *take(void)
{
	struct block **at = &stock.unused, *b;

	kbi_lock_take(&stock.lock);
	/* acquire: partner is the kernel's store at the end of the block's last kernel thread */
	while ((b = *at) && a_load_acq(&b->tcb.alive))
		at = &b->next;
	if (b) {
		*at = b->next;
		a_sub_rlx(&stock.n, 1);
	}
	kbi_lock_leave(&stock.lock);
	return b;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Apart from those of the program's threads, which begin at 0. */
static unsigned number_of(uint32_t i)
{
	return KBI_TCB_ID_TURNING + (KBI_TCB_ID_LIMIT - KBI_TCB_ID_STILL) - 1 - i;
}

/* The lowest page is a guard. */
static bool make(struct block *b, uint32_t i)
{
	size_t size = (KBI_AGENT_STACK + kbi_tcb_overhead() + 2 * KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
	char *slab = kbi_sys_map(size);

	if (!slab)
		return false;
	if (!kbi_sys(SYS_mprotect, slab, KBI_PAGE, PROT_NONE) &&
	    !kbi_tcb_make(&b->tcb, slab + KBI_PAGE, size - KBI_PAGE, number_of(i), NULL))
		return true;
	kbi_sys_unmap(slab, size);
	return false;
}

bool kbi_stock_add(void)
{
	uint32_t i;

	if (kbi_sys_from.processes)
		return kbi_body_stack_add();
	i = a_add_rlx(&stock.made, 1);
	if (i >= BLOCKS || !make(&blocks[i], i)) {
		a_store_rlx(&stock.made, BLOCKS); /* nor will it be tried again */
		return false;
	}
	put(&blocks[i]);
	return true;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void run(void *block)
{
	struct block *b = block;

	b->fn(b->arg);
	kbi_tcb_reset(&b->tcb, NULL);
	put(b);
}

bool kbi_stock_start(void *(*fn)(void *), void *arg)
{
	struct block *b = kbi_sys_from.processes || !a_load_rlx(&stock.n) ? NULL : take();

	if (!b)
		return false;
	b->fn = fn;
	b->arg = arg;
	if (!kbi_tcb_run(&b->tcb, run, b))
		return true;
	put(b);
	return false;
}

void kbi_stock_after_fork(void)
{
	a_store_rlx(&stock.lock, 0);
	a_store_rlx(&stock.n, 0);
	a_store_rlx(&stock.made, BLOCKS); /* no more */
	stock.unused = NULL;
}
