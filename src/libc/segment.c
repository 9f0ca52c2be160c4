/* libc/segment.c - thread pointers by segment descriptors. Contract in segment.h. */
#include "libc/segment.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/option.h"
#include "os/lock.h"
#include "os/random.h"
#include "os/sys.h"

/* The window for blocks: above the range of MAP_32BIT, on which programs that generate code depend;
 * a program's own image and its break begin far below. */
#define LOW UINT64_C(0x80000000)
#define HIGH UINT64_C(0x100000000)
enum { STEP = 64 << 20, TRIES = 64, FILTERED = 2 /* SECCOMP_MODE_FILTER */ };

a8 kbi_segment_open;

static struct {
	a32 lock;
	/* under the lock; a child of fork goes on counting, because it has a copy of the table */
	uint32_t given;
	/* one caller at a time */
	uint64_t at;
	bool full;
} segments;

bool kbi_segment_filtered(void)
{
	return kbi_sys(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == FILTERED;
}

static bool are_segments_wanted(void)
{
	if (!KBI_HAVE_SEGMENTS || kbi_options.body == KBI_OPT_BODY_PROCESS ||
		kbi_options.segments == KBI_OPT_SEGMENTS_NO)
		return false;
	if (kbi_options.segments == KBI_OPT_SEGMENTS_YES)
		return true;
	/* AT_SECURE: the stacks of a program with more rights than its caller must not be found, and
	 * here they lie in 2 GiB */
	return kbi_tp_segment_pays() && !kbi_segment_filtered() && !getauxval(AT_SECURE);
}

/* Returns a random address in the window, so that stacks cannot be guessed. The search wraps round
 * at the window's end. */
static uint64_t random_window_address(void)
{
	uint64_t r;

	kbi_random(&r, sizeof r);
	return LOW + r % ((HIGH - LOW) / KBI_PAGE) * KBI_PAGE;
}

void kbi_segment_setup(void)
{
	segments.at = random_window_address();
	a_store_rlx(&kbi_segment_open, are_segments_wanted());
}

void kbi_segment_close(void)
{
	kbi_lock_take(&segments.lock);
	a_store_rlx(&kbi_segment_open, false);
	kbi_lock_leave(&segments.lock);
}

void kbi_segment_stop(void)
{
	a_store_rlx(&kbi_segment_open, false);
}

static void *map_block_at(uint64_t at, size_t bytes)
{
	void *p = kbi_sys_mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		MAP_NORESERVE | MAP_FIXED_NOREPLACE);

	/* kernels before 4.17 take the address for a hint */
	if (p && (uintptr_t)p != at) {
		munmap(p, bytes);
		return NULL;
	}
	return p;
}

void *kbi_segment_map(size_t bytes)
{
	if (!kbi_segment_is_open() || segments.full || bytes > HIGH - LOW)
		return NULL;
	for (unsigned i = 0; i < TRIES; i++) {
		void *p;

		if (segments.at + bytes > HIGH)
			segments.at = LOW;
		p = map_block_at(segments.at, bytes);
		segments.at += p ? bytes : STEP;
		if (p)
			return p;
	}
	segments.full = true;
	return NULL;
}

/* Under the lock: makes the next descriptor. Returns its selector; 0: none is left. */
static unsigned make_next_descriptor(void *tp)
{
	unsigned selector = 0;

	if (!kbi_segment_is_open())
		return 0;
	if (segments.given < KBI_SEGMENTS &&
		!(kbi_options.segments == KBI_OPT_SEGMENTS_AUTO && kbi_segment_filtered()))
		selector = kbi_tp_segment_make(segments.given++, tp);
	if (!selector)
		a_store_rlx(&kbi_segment_open, false);
	return selector;
}

kbi_tpword kbi_segment_give(void *tp)
{
	uint64_t selector;

	if ((uint64_t)(uintptr_t)tp >= HIGH)
		return (kbi_tpword)tp;
	kbi_lock_take(&segments.lock);
	selector = make_next_descriptor(tp);
	kbi_lock_leave(&segments.lock);
	return (kbi_tpword)((uint64_t)(uintptr_t)tp | selector << KBI_SEGMENT_SHIFT);
}

void kbi_segment_after_fork(void)
{
	a_store_rlx(&segments.lock, 0);
}
