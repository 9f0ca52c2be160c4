/* core/live_threads.c - the number of live threads. Contract in live_threads.h. Runs on any
 * thread. */
#include "core/live_threads.h"

#include <stdlib.h>

#include "os/sys.h"

enum { MEMBARRIER_GLOBAL = 1 };

struct kbi_live_threads kbi_live_threads[KBI_MAX_VPS + 1];
a32 kbi_live_threads_without_main;
a32 kbi_live_threads_ever;
a32 kbi_live_threads_servants;

uint64_t kbi_live_threads_sum(void)
{
	uint64_t n = 1 - a_load_rlx(&kbi_live_threads_without_main);

	/* acquire: partner is the release in kbi_live_threads_count */
	for (unsigned i = 0; i <= kbi_vp_n; i++)
		n -= a_load_acq(&kbi_live_threads[i].ended);
	for (unsigned i = 0; i <= kbi_vp_n; i++)
		n += a_load_rlx(&kbi_live_threads[i].created);
	return n;
}

static void leave_if_last(void)
{
	static a32 leaving;

	/* acquire and release: no data is passed, a single caller is to leave */
	if (kbi_live_threads_sum() == 0 && !a_xchg_acqrel(&leaving, 1))
		exit(0);
}

/* A thread that ends counts that and then reads whether main has ended, without a fence, which
 * would cost each thread. Main pays for all threads: the count of a thread that read before this
 * membarrier is seen after it. Where the kernel has no membarrier, a millisecond empties every
 * store buffer. */
void kbi_live_threads_main_ended(void)
{
	struct timespec ms = { 0, 1000000 };

	a_store_rlx(&kbi_live_threads_without_main, 1);
	/* partner: the barrier in kbi_live_threads_ended, by way of membarrier */
	a_fence_sc();
	if (kbi_live_threads_sum() > 0 && kbi_sys(SYS_membarrier, MEMBARRIER_GLOBAL, 0, 0))
		kbi_sys(SYS_nanosleep, &ms, NULL);
	leave_if_last();
}

void kbi_live_threads_check(void)
{
	a_fence_sc(); /* two last threads at once: each stores before it adds up, so at least one sees
	               * both ends. Partner: the same fence in the other thread */
	leave_if_last();
}
