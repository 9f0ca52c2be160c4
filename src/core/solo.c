/* core/solo.c - the beginning and the end of running alone. Contract in solo.h. Runs anywhere; no locks. */
#include "core/solo.h"

#include <sys/stat.h>

#include "os/sys.h"

/* The kernel's numbers: a fence on every processor that runs this process; and leave to ask for it. */
enum { MEMBARRIER_PRIVATE = 8, MEMBARRIER_REGISTER_PRIVATE = 16 };

struct kbi_solo kbi_solo = { .ended = { 1 } };

/* Are there no kernel threads beside the caller? If it cannot be seen: no. */
static bool is_only_one(void)
{
	struct stat st;

	/* ".", ".." and a folder for each */
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

void kbi_solo_begin(void)
{
	if (!is_only_one() || kbi_sys(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE, 0, 0))
		return;
	a_store_rlx(&kbi_solo.ended, 0);
	a_store_rel(&kbi_solo.on, 1); /* the threads that use it are made later by the caller */
}

void kbi_solo_after_fork(void)
{
	a_store_rlx(&kbi_solo.on, 0);
	a_store_rlx(&kbi_solo.ended, 1);
}

/* Several may be here at once; each waits. If the program has given up the right to call membarrier since the start
 * (seccomp), a millisecond empties the VP's store buffer. */
void kbi_solo_end_slow(void)
{
	struct timespec ms = { 0, 1000000 };

	a_store_rlx(&kbi_solo.on, 0);
	a_fence_sc();
	if (kbi_sys(SYS_membarrier, MEMBARRIER_PRIVATE, 0, 0))
		kbi_sys(SYS_nanosleep, &ms, NULL);
	/* acquire: partner is the release in kbi_solo_leave; what sections wrote is seen */
	while (a_load_acq(&kbi_solo.busy))
		kbi_sys_yield();
	/* release: partner is the acquire in kbi_solo_end */
	a_store_rel(&kbi_solo.ended, 1);
}
