/* core/single_threaded.c - the beginning and the end of running alone. Contract in
 * single_threaded.h. Runs on any kernel thread and stack; no locks; never switches. */
#include "core/single_threaded.h"

#include <sys/stat.h>

#include "base/option.h"
#include "os/sys.h"

/* The kernel's numbers for membarrier: a fence on every processor that runs this process, and
 * the registration for it. */
enum { MEMBARRIER_PRIVATE = 8, MEMBARRIER_REGISTER_PRIVATE = 16, MEMBARRIER_GLOBAL = 2,
	MEMBARRIER_REGISTER_GLOBAL = 4 };
/* With VPs as processes: a fence on every processor that runs a registered process. */
static int fence = MEMBARRIER_PRIVATE, leave = MEMBARRIER_REGISTER_PRIVATE;

#define OVER ((uint64_t)1 << KBI_SINGLE_THREADED_VPS)


struct kbi_single_threaded kbi_single_threaded = { .awake = { OVER }, .ended = { 1 } };

/* Returns true if the caller is the process's only kernel thread; false if this cannot be seen. */
bool kbi_single_threaded_is_only_one(void)
{
	struct stat st;

	/* ".", ".." and a folder for each kernel thread */
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

void kbi_single_threaded_begin(unsigned vps)
{
	if (kbi_options.body == KBI_OPT_BODY_PROCESS) {
		fence = MEMBARRIER_GLOBAL;
		leave = MEMBARRIER_REGISTER_GLOBAL;
	}
	if (kbi_sys(SYS_membarrier, leave, 0, 0))
		return;
	a_store_rlx(&kbi_single_threaded.has_barrier, 1);
	if (vps > KBI_SINGLE_THREADED_VPS || !kbi_single_threaded_is_only_one())
		return;
	a_store_rlx(&kbi_single_threaded.ended, 0);
	/* release: pairs with kbi_single_threaded_enter's acquire; the caller creates the threads
	 * later */
	a_store_rel(&kbi_single_threaded.awake, ((uint64_t)1 << vps) - 1);
}

void kbi_single_threaded_joins(void)
{
	kbi_sys(SYS_membarrier, leave, 0, 0);
}

void kbi_single_threaded_after_fork(void)
{
	a_store_rlx(&kbi_single_threaded.awake, OVER);
	a_store_rlx(&kbi_single_threaded.ended, 1);
}

/* If the program has given up the right to call membarrier since the start (seccomp), sleeping a
 * millisecond empties the store buffers of the remaining processors. */
void kbi_single_threaded_barrier(void)
{
	struct timespec ms = { 0, 1000000 };

	a_fence_sc();
	if (kbi_sys(SYS_membarrier, fence, 0, 0))
		kbi_sys(SYS_nanosleep, &ms, NULL);
}

/* Waits until no VP is inside a section; the caller has changed the word. */
static void settle_sections(void)
{
	kbi_single_threaded_barrier();
	/* acquire: pairs with the release in kbi_single_threaded_leave; the sections' writes are
	 * seen */
	for (unsigned n = 0; a_load_acq(&kbi_single_threaded.busy); n++)
		kbi_sys_yield_to_holder(n);
}

/* Several kernel threads may be here at once; each waits. */
void kbi_single_threaded_end_slow(void)
{
	/* release: pairs with the acquires in kbi_single_threaded_enter */
	a_or_acqrel(&kbi_single_threaded.awake, OVER);
	settle_sections();
	/* release: pairs with the acquire in kbi_single_threaded_end */
	a_store_rel(&kbi_single_threaded.ended, 1);
}

/* release: pairs with the acquire in kbi_single_threaded_enter */
void kbi_single_threaded_park(struct kbi_vp *vp)
{
	if (vp->parked || a_load_rlx(&kbi_single_threaded.awake) & OVER)
		return;
	vp->parked = 1;
	a_and_acqrel(&kbi_single_threaded.awake, ~vp->awake_bit);
}

/* Returns true if a VP may still be inside a section. others: the word before. A third VP that
 * comes while the second waits sees that it settles: the second has counted itself in `settling`
 * before it set its bit. The acquires pair with the release in kbi_single_threaded_end_slow and
 * with the second VP's a_add_acqrel. */
static bool is_unsettled(uint64_t others)
{
	if (others & OVER)
		return !a_load_acq(&kbi_single_threaded.ended);
	/* one bit: that VP was alone until now */
	return others && (!(others & (others - 1)) || a_load_acq(&kbi_single_threaded.settling) > 1);
}

KBI_NOINLINE void kbi_single_threaded_unpark_slow(struct kbi_vp *vp)
{
	vp->parked = 0;
	/* release: pairs with the acquire of `settling` in is_unsettled; that of `awake` below pairs
	 * with the acquires in kbi_single_threaded_enter, its acquire with the release in
	 * kbi_single_threaded_park */
	a_add_acqrel(&kbi_single_threaded.settling, 1);
	if (is_unsettled(a_or_acqrel(&kbi_single_threaded.awake, vp->awake_bit)))
		settle_sections();
	a_sub_acqrel(&kbi_single_threaded.settling, 1);
}
