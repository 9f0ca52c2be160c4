/* core/nursery.c - spares made ahead. Contract in nursery.h. Runs on its own kernel thread, all signals blocked; sleeps
 * until core/spare says that too few wait. */
#include "core/nursery.h"

#include "core/body_thread.h"
#include "core/spare.h"
#include "os/sys.h"

static a32 runs, failed; /* the last one could not be made */

static void *run(void *unused)
{
	(void)unused;
	for (;;) {
		a_store_rlx(&kbi_spare_low, 0);
		a_fence_sc(); /* partner: the exchange in kbi_spare_tell; who tells after this is heard */
		while (kbi_spare_is_low()) {
			a_store_rlx(&failed, kbi_body_start_spare() != 0);
			if (a_load_rlx(&failed))
				break;
		}
		kbi_sys_futex_wait(&kbi_spare_low, 0, NULL);
	}
	return NULL;
}

void kbi_nursery_start(void)
{
	/* the first one by the caller: nothing blocks before it is there */
	if (kbi_spare_is_low())
		kbi_body_start_spare();
	a_store_rlx(&runs, 1);
	if (kbi_body_start_closed(run, NULL))
		a_store_rlx(&runs, 0);
}

bool kbi_nursery_runs(void)
{
	return a_load_rlx(&runs);
}

bool kbi_nursery_ask(void)
{
	if (!kbi_nursery_runs())
		return !kbi_body_start_spare();
	kbi_spare_tell();
	return kbi_spare_is_low() && !a_load_rlx(&failed);
}
