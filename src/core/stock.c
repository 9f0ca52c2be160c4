/* core/stock.c - control blocks for kernel threads, made ahead. Contract in stock.h. Blocks are
 * used again and again: a kernel thread makes its block as new at its end, and the kernel reports
 * when nothing runs on the stack any more (tcb.alive). Runs on any stack; the blocks' kernel
 * threads run on their own. */
#include "core/stock.h"

#include <sys/mman.h>

#include "core/descriptor.h"
#include "core/process_stack.h"
#include "core/worker.h"
#include "libc/tcb.h"
#include "os/lock.h"
#include "os/sys.h"

enum {
	LEAST = 8,    /* blocks that are kept at least, */
	MOST = 64,    /* and at most */
	BLOCKS = 512  /* that there may be */
};

static struct block {
	struct kbi_tcb tcb;
	/* under the lock */
	struct block *next;
	/* the starter's, then the kernel thread's own */
	void *(*fn)(void *);
	void *arg;
} blocks[BLOCKS];

static struct {
	a32 lock;
	/* under the lock */
	struct block *unused;
	a32 n;    /* how many are unused */
	a32 made; /* by any thread; BLOCKS and more: no more are made */
} stock;

bool kbi_stock_is_low(void)
{
	uint32_t threads = kbi_descriptor_limit(),
		target = threads < LEAST ? LEAST : threads > MOST ? MOST : threads;

	if (kbi_sys_from.processes)
		return kbi_process_stack_kept() < target;
	return a_load_rlx(&stock.n) < target && a_load_rlx(&stock.made) < BLOCKS && kbi_tcb_available &&
	       kbi_tcb_mode() == KBI_TCB_TEMPLATE;
}

static void put_stock_block(struct block *b)
{
	kbi_lock_take(&stock.lock);
	b->next = stock.unused;
	stock.unused = b;
	a_add_rlx(&stock.n, 1);
	kbi_lock_leave(&stock.lock);
}

/* Takes a block whose stack is free; NULL: there is none. */
static struct block *take_stock_block(void)
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

/* ---- making ---------------------------------------------------------------------------------- */

/* Returns a block's number, apart from the numbers of the program's threads, which begin at 0. */
static unsigned number_of_block(uint32_t i)
{
	return KBI_TCB_ID_TURNING + (KBI_TCB_ID_LIMIT - KBI_TCB_ID_STILL) - 1 - i;
}

/* Makes a block with its stack, whose lowest page is a guard. */
static bool make_stock_block(struct block *b, uint32_t i)
{
	size_t size = (KBI_AGENT_STACK + kbi_tcb_overhead() + 2 * KBI_PAGE - 1) &
		~(size_t)(KBI_PAGE - 1);
	char *slab = kbi_sys_map(size);

	if (!slab)
		return false;
	if (!kbi_sys(SYS_mprotect, slab, KBI_PAGE, PROT_NONE) &&
	    !kbi_tcb_make(&b->tcb, slab + KBI_PAGE, size - KBI_PAGE, number_of_block(i), NULL))
		return true;
	kbi_sys_unmap(slab, size);
	return false;
}

bool kbi_stock_add(void)
{
	uint32_t i;

	if (kbi_sys_from.processes)
		return kbi_process_stack_add();
	i = a_add_rlx(&stock.made, 1);
	if (i >= BLOCKS || !make_stock_block(&blocks[i], i)) {
		a_store_rlx(&stock.made, BLOCKS); /* nothing is tried again */
		return false;
	}
	put_stock_block(&blocks[i]);
	return true;
}

/* ---- starting -------------------------------------------------------------------------------- */

static void run_stock_block(void *block)
{
	struct block *b = block;

	b->fn(b->arg);
	kbi_tcb_reset(&b->tcb, NULL);
	put_stock_block(b);
}

bool kbi_stock_start(void *(*fn)(void *), void *arg)
{
	struct block *b = kbi_sys_from.processes || !a_load_rlx(&stock.n) ? NULL
		: take_stock_block();

	if (!b)
		return false;
	b->fn = fn;
	b->arg = arg;
	if (!kbi_tcb_run(&b->tcb, run_stock_block, b))
		return true;
	put_stock_block(b);
	return false;
}

void kbi_stock_after_fork(void)
{
	a_store_rlx(&stock.lock, 0);
	a_store_rlx(&stock.n, 0);
	a_store_rlx(&stock.made, BLOCKS); /* no more */
	stock.unused = NULL;
}
