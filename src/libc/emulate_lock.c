/* libc/emulate_lock.c - locked memory where virtual processors are processes. Contract in
 * emulate_lock.h.
 * Plain memory of the space stays mapped when the program unmaps it: so it is unlocked then. Memory
 * that is locked before it is touched (mlockall, MLOCK_ONFAULT) counts at once, and stays resident
 * once the first process has touched it. */
#include "libc/emulate_lock.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/atom.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/sys.h"

/* flag of mlock2 */
/* flag of mlockall */
enum { ON_FAULT = 1, ALL_ON_FAULT = 4, POPULATE_READ = 22, BEFORE = 64 };
enum { SEEK_TO_DATA = 3, SEEK_TO_HOLE = 4 };

static struct {
	aptr there;    /* written once: long (*)(long nr, const long arg[6]) */
	a32 any;       /* some memory has been locked */
	a32 future;    /* new memory is locked */
	/* before there are processes */
	unsigned n;
	struct {
		uintptr_t from, to;
	} before[BEFORE];
} locks;

static long make_there(long nr, uintptr_t at, size_t bytes, long flags)
{
	long (*there)(long, const long *) =
		(long (*)(long, const long *))(uintptr_t)a_load_rlx(&locks.there);

	return there ? there(nr, (const long[6]){ (long)at, (long)bytes, flags }) :
		kbi_sys(nr, at, bytes, flags);
}

/* Makes the touched pages of the space resident; the rest stays untouched. */
static void keep_in_memory(uintptr_t from, uintptr_t to)
{
	long fd = kbi_memory_descriptor(), base = (long)kbi_memory_offset((void *)from),
		at = base, hole;

	for (; (at = kbi_sys(SYS_lseek, fd, at, SEEK_TO_DATA)) >= 0 && at - base < (long)(to - from);
		at = hole) {
		hole = kbi_sys(SYS_lseek, fd, at, SEEK_TO_HOLE);
		if (hole <= at)
			return;
		make_there(SYS_madvise, from + (size_t)(at - base), (size_t)(hole - at), POPULATE_READ);
	}
}

/* Locks the program's memory outside of the space: its code, maps of files. *result: -ENOMEM if the
 * limit is reached. */
static void lock_other(const struct kbi_maps_line *m, const char *name, const char *flags,
	void *result)
{
	long *r = result;

	(void)name, (void)flags;
	if (*r || m->kernels || kbi_memory_holds((void *)m->from, m->to - m->from) ||
		kbi_memory_is_added((void *)m->from, 1))
		return;
	if (make_there(SYS_mlock2, m->from, m->to - m->from, ON_FAULT) == -ENOMEM)
		*r = -ENOMEM;
}

static long lock_all(long flags)
{
	uintptr_t from, to;
	long r = 0;

	if (flags & ~(MCL_CURRENT | MCL_FUTURE | ALL_ON_FAULT) || !(flags & (MCL_CURRENT | MCL_FUTURE)))
		return -EINVAL;
	kbi_memory_used(&from, &to);
	if (flags & MCL_CURRENT) {
		r = make_there(SYS_mlock2, from, to - from, ON_FAULT);
		if (!r)
			kbi_maps_each(lock_other, &r);
		if (r)
			return r;
		if (!(flags & ALL_ON_FAULT))
			keep_in_memory(from, to);
		a_store_rlx(&locks.any, 1);
	}
	a_store_rlx(&locks.future, flags & MCL_FUTURE ? 1 : 0);
	return 0;
}

long kbi_emulate_lock(long nr, const long a[6], long (*there)(long nr, const long arg[6]))
{
	long r;

	a_store_rlx(&locks.there, (void *)(uintptr_t)there);
	switch (nr) {
	case SYS_mlockall:
		return lock_all(a[0]);
	case SYS_munlockall:
		a_store_rlx(&locks.future, 0);
		return there(nr, a);
	default:
		r = there(nr, a);
		if (!r && nr != SYS_munlock)
			a_store_rlx(&locks.any, 1);
		return r;
	}
}

long kbi_emulate_lock_new(uintptr_t at, size_t bytes, bool touch)
{
	long r;

	if (kbi_likely(!a_load_rlx(&locks.future)))
		return 0;
	r = make_there(SYS_mlock2, at, bytes, touch ? 0 : ON_FAULT);
	if (!r)
		a_store_rlx(&locks.any, 1);
	return r ? -EAGAIN : 0;
}

void kbi_emulate_lock_gone(uintptr_t at, size_t bytes)
{
	if (a_load_rlx(&locks.any))
		make_there(SYS_munlock, at, bytes, 0);
}

void kbi_emulate_lock_note(uintptr_t from, uintptr_t to)
{
	if (locks.n == BEFORE)
		return;
	locks.before[locks.n].from = from;
	locks.before[locks.n++].to = to;
}

void kbi_emulate_lock_again(void)
{
	for (unsigned i = 0; i < locks.n; i++)
		kbi_sys(SYS_mlock, locks.before[i].from, locks.before[i].to - locks.before[i].from);
	if (locks.n)
		a_store_rlx(&locks.any, 1);
}
