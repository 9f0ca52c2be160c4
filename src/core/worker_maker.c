/* core/worker_maker.c - idle workers made ahead, kernel threads for threads that must not make
 * them, and a full stock. Contract in worker_maker.h. Runs on its own kernel thread with all
 * signals blocked; sleeps until core/worker_pool reports that too few idle workers wait, or a
 * thread asks. */
#include "core/worker_maker.h"

#include "core/stock.h"
#include "core/worker_pool.h"
#include "core/worker_thread.h"
#include "libc/real.h"
#include "os/sys.h"

static a32 runs, failed; /* failed: the last worker could not be made */

/* An order for a kernel thread, by a thread at a time. FREE -> TAKEN -> ASKED by the asker, ->
 * ANSWERED by the worker maker, -> FREE by the asker. */
enum { FREE, TAKEN, ASKED, ANSWERED };
static struct {
	a32 state;
	void *(*fn)(void *);
	void *arg;
	sigset_t mask;
	int e;
} order;

static void serve_order(void)
{
	sigset_t own;

	/* acquire: partner is the release of ASKED in order_kernel_thread */
	if (a_load_acq(&order.state) != ASKED)
		return;
	kbi_real.pthread_sigmask(SIG_SETMASK, &order.mask, &own);
	order.e = kbi_worker_kernel_thread(order.fn, order.arg);
	kbi_real.pthread_sigmask(SIG_SETMASK, &own, NULL);
	a_store_rel(&order.state, ANSWERED); /* partner: the acquire in order_kernel_thread */
	kbi_sys_futex_wake(&order.state, INT32_MAX);
}

static void claim_order(void)
{
	uint32_t found = FREE;

	/* acquire: partner is the release at the end of order_kernel_thread */
	while (!a_cas_acq(&order.state, &found, TAKEN)) {
		kbi_sys_futex_wait(&order.state, found, NULL);
		found = FREE;
	}
}

static int order_kernel_thread(void *(*fn)(void *), void *arg, const sigset_t *mask)
{
	uint32_t now;
	int e;

	claim_order();
	order.fn = fn;
	order.arg = arg;
	order.mask = *mask;
	a_store_rel(&order.state, ASKED); /* partner: the acquire in serve_order */
	kbi_worker_pool_tell();
	while ((now = a_load_acq(&order.state)) != ANSWERED) /* partner: in serve_order */
		kbi_sys_futex_wait(&order.state, now, NULL);
	e = order.e;
	a_store_rel(&order.state, FREE); /* partner: the acquire in claim_order */
	kbi_sys_futex_wake(&order.state, INT32_MAX);
	return e;
}

static void make_idle_workers(void)
{
	while (kbi_worker_pool_is_low()) {
		a_store_rlx(&failed, kbi_worker_start_idle() != 0);
		if (a_load_rlx(&failed))
			break;
	}
}

static void *run_worker_maker(void *unused)
{
	(void)unused;
	for (;;) {
		a_store_rlx(&kbi_worker_pool_low, 0);
		/* partner: the exchange in kbi_worker_pool_tell; a request after this fence ends the sleep
		 * below */
		a_fence_sc();
		serve_order();
		make_idle_workers();
		while (kbi_stock_is_low() && kbi_stock_add()) {
			serve_order();
			make_idle_workers();
		}
		kbi_sys_futex_wait(&kbi_worker_pool_low, 0, NULL);
	}
	return NULL;
}

void kbi_worker_maker_start(void)
{
	/* the caller makes the first: no thread blocks before it is there */
	if (kbi_worker_pool_is_low())
		kbi_worker_start_idle();
	a_store_rlx(&runs, 1);
	if (kbi_worker_start_closed(run_worker_maker, NULL))
		a_store_rlx(&runs, 0);
	else
		kbi_worker_maker = order_kernel_thread;
}

bool kbi_worker_maker_runs(void)
{
	return a_load_rlx(&runs);
}

bool kbi_worker_maker_ask(void)
{
	if (!kbi_worker_maker_runs())
		return !kbi_worker_start_idle();
	/* the worker maker may wait for a lock that is not released before there is an idle worker */
	if (!kbi_worker_start_idle_at_once()) {
		kbi_worker_pool_tell();
		return true;
	}
	kbi_worker_pool_tell();
	return kbi_worker_pool_may_grow() && !a_load_rlx(&failed);
}
