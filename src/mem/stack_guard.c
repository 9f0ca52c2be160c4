/* mem/stack_guard.c - makes guard pages below stacks. Contract in stack_guard.h. */
#include "mem/stack_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/atom.h"
#include "base/option.h"
#include "libc/broadcast.h"
#include "os/fd.h"
#include "os/newer.h"
#include "os/sys.h"

static uint8_t kind; /* enum kbi_option_guard; constant after setup */
static a32 left;     /* guards that may still split a mapping; any thread, atomic */

static bool guard_works(void)
{
	char *p = kbi_sys_map(2 * KBI_PAGE);
	bool made = p && madvise(p, KBI_PAGE, MADV_GUARD_INSTALL) == 0;
	/* An emulator may accept any advice; so check that not even the kernel can write there. */
	bool ok = made && kbi_sys(SYS_clock_gettime, CLOCK_MONOTONIC, p) == -EFAULT;

	if (made)
		madvise(p, KBI_PAGE, MADV_GUARD_REMOVE);
	if (p)
		kbi_sys_unmap(p, 2 * KBI_PAGE);
	return ok;
}

/* Returns how many guards mprotect may make. mprotect splits a mapping, and the kernel limits the
 * mappings of a process. Half of them are for guards; stacks beyond that have no guard, so that the
 * program can still map memory. */
static uint32_t guards_allowed(void)
{
	char text[32] = "";
	KBI_FD_BRIEFLY();
	long fd = kbi_sys(SYS_openat, AT_FDCWD, "/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	uint32_t maps = 65530;

	if (fd >= 0) {
		if (kbi_sys(SYS_read, fd, text, sizeof text - 1) > 0)
			maps = (uint32_t)strtoul(text, NULL, 10);
		kbi_sys(SYS_close, fd);
	}
	return maps / 4; /* a guard and the stack above it are two mappings */
}

static bool may_split(void)
{
	uint32_t n = a_load_rlx(&left);

	while (n > 0)
		if (a_cas_rlx(&left, &n, n - 1))
			return true;
	return false;
}

bool kbi_stack_guard(char *page)
{
	switch (kind) {
	case KBI_OPT_GUARD_MADVISE:
		return madvise(page, KBI_PAGE, MADV_GUARD_INSTALL) == 0;
	case KBI_OPT_GUARD_MPROTECT:
		return may_split() && mprotect(page, KBI_PAGE, PROT_NONE) == 0;
	default:
		return false;
	}
}

/* A guard belongs to one process. Where virtual processors are processes, each makes the guards,
 * all guards of a new chunk at once. */
void kbi_stack_guard_chunk(char *p, size_t each, uint32_t n)
{
	bool advise = kind == KBI_OPT_GUARD_MADVISE;
	struct kbi_broadcast_call c = { .nr = advise ? SYS_madvise : SYS_mprotect,
					 .arg = { (long)p, KBI_PAGE, advise ? MADV_GUARD_INSTALL : PROT_NONE },
					 .more = n - 1, .step = (long)each, .pointer = -1 };

	if (kind != KBI_OPT_GUARD_NONE)
		kbi_broadcast(&c);
}

bool kbi_stack_guard_any(void)
{
	return kind != KBI_OPT_GUARD_NONE;
}

void kbi_stack_guard_setup(void)
{
	kind = (uint8_t)kbi_options.guard;
	if ((kind == KBI_OPT_GUARD_AUTO || kind == KBI_OPT_GUARD_MADVISE) && !guard_works()) {
		if (kind == KBI_OPT_GUARD_MADVISE)
			kbi_sys_message("guard=madvise: the kernel has no MADV_GUARD_INSTALL (Linux 6.13): "
					"guards by mprotect");
		kind = KBI_OPT_GUARD_MPROTECT;
	}
	if (kind == KBI_OPT_GUARD_AUTO)
		kind = KBI_OPT_GUARD_MADVISE;
	if (kind == KBI_OPT_GUARD_MPROTECT)
		a_store_rlx(&left, guards_allowed());
}
