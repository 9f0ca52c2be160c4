/* libc/emulate_owned.c - system calls about an address space or a process. Contract in
 * emulate_owned.h.
 * Runs on the caller's stack, inside libc; calls no function of libc's that could come back
 * here. */
#include "libc/emulate_owned.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/atom.h"
#include "libc/broadcast.h"
#include "libc/emulate_lock.h"
#include "libc/emulate_map.h"
#include "libc/intercept.h"
#include "os/fd.h"
#include "os/maps.h"
#include "os/memory.h"
#include "os/memory_marks.h"
#include "os/sys.h"

enum {
	SQ_POLL = 2,        /* IORING_SETUP_SQPOLL */
	SET_MDWE = 65, SET_MERGE = 67, /* options of prctl */
};

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct refusal {
	const char *name;
	short nr, error;
} refusals[] = {
	/* signals to the program wait at its first process */
	{ "signalfd", SYS_signalfd4, ENOSYS },
	{ "io_setup", SYS_io_setup, ENOSYS },        /* its ring belongs to an address space */
	/* it reports the faults of a single address space */
	{ "userfaultfd", SYS_userfaultfd, ENOSYS },
	{ "mseal", SYS_mseal, ENOSYS },
	{ "pkey_alloc", SYS_pkey_alloc, ENOSPC },    /* as on a processor without keys */
};
static a32 said[kbi_countof(refusals)];

static const struct refusal *find_refusal(long nr)
{
	for (unsigned i = 0; i < kbi_countof(refusals); i++)
		if (refusals[i].nr == nr)
			return &refusals[i];
	return NULL;
}

static long refuse_call(const struct refusal *r)
{
	if (!a_xchg_rlx(&said[r - refusals], 1))
		kbi_sys_message("%s is refused where virtual processors are processes: %s", r->name,
				r->error == ENOSYS ? "ENOSYS" : "ENOSPC");
	return -r->error;
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* Makes membarrier in every process. The kernel's private barriers are for the threads of a single
 * address space: each process is interrupted, and has been in the kernel, before the caller goes
 * on. A process started after the program's registration is not registered: then it registers
 * first. */
static long make_membarrier(const long a[6])
{
	/* GET_REGISTRATIONS */
	const long all = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_GLOBAL_EXPEDITED | 1 << 9;
	static a64 registered;
	/* the command that registers for cmd is the next bit */
	long cmd = a[0], as = (cmd & ~all) << 1, r;

	if (!cmd || cmd & all)
		return kbi_sys(SYS_membarrier, cmd, a[1], a[2]);
	r = kbi_emulate_broadcast(SYS_membarrier, cmd, a[1], a[2], 0, 0, 0);
	if (r == -EPERM && a_load_rlx(&registered) & (uint64_t)as) {
		kbi_sys(SYS_membarrier, as, 0, 0);
		r = kbi_emulate_broadcast(SYS_membarrier, cmd, a[1], a[2], 0, 0, 0);
	}
	if (!r)
		a_or_rlx(&registered, (uint64_t)cmd);
	return r;
}

/* ---- prctl ----------------------------------------------------------------------------------- */

/* Makes prctl. Options about the program's parent, children and first process are made by the first
 * process; options of an address space are set in all. Returns true: *r is the answer. */
static bool answer_owned_prctl(const long a[6], kbi_emulate_maker *there, long *r)
{
	switch (a[0]) {
	case PR_SET_PDEATHSIG: /* our own setting ends each process with the first */
	case PR_GET_PDEATHSIG:
	case PR_SET_MM:
	case PR_SET_CHILD_SUBREAPER:
	case PR_GET_CHILD_SUBREAPER:
		*r = there(SYS_prctl, a);
		return true;
	case PR_SET_DUMPABLE:
	case PR_SET_THP_DISABLE:
	case SET_MDWE:
	case SET_MERGE:
		*r = kbi_emulate_broadcast(SYS_prctl, a[0], a[1], a[2], a[3], a[4], 0);
		return true;
	default:
		return false;
	}
}

/* ---- identities ------------------------------------------------------------------------------ */

/* Makes the call and restores PR_SET_PDEATHSIG, which the kernel then forgets: the process must end
 * with its parent, the first process. The parent may have ended just before. */
static long change_identity(long nr, const long a[6])
{
	long parent = kbi_sys(SYS_getppid), r;
	int sig = 0;

	kbi_sys(SYS_prctl, PR_GET_PDEATHSIG, &sig);
	r = kbi_sys(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (!sig)
		return r;
	kbi_sys(SYS_prctl, PR_SET_PDEATHSIG, sig);
	if (kbi_sys(SYS_getppid) != parent)
		kbi_sys(SYS_exit_group, 0);
	return r;
}

/* ---- advice and page order of several kinds -------------------------------------------------- */

/* Makes process_madvise. Refuses advice that changes memory: the target may be the program
 * itself. */
static long advise_process(const long a[6])
{
	switch (a[3]) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
	case MADV_GUARD_INSTALL: case MADV_GUARD_REMOVE:
		return -EINVAL;
	default:
		return kbi_sys(SYS_process_madvise, a[0], a[1], a[2], a[3], a[4]);
	}
}

/* Private memory cannot be reordered: ours is a part of a file, but not of the program's. */
static long remap_pages(const long a[6])
{
	struct kbi_maps_line m;

	if (kbi_maps_find((uintptr_t)a[0], &m) || !m.shared || m.inode == kbi_memory_file())
		return -EINVAL;
	return kbi_emulate_broadcast(SYS_remap_file_pages, a[0], a[1], a[2], a[3], a[4], 0);
}

bool kbi_emulate_owned(long nr, const long a[6], kbi_emulate_maker *there, long *r)
{
	const struct refusal *refusal = find_refusal(nr);
	const long protect[6] = { a[0], a[1], a[2] };

	if (refusal) {
		*r = refuse_call(refusal);
		return true;
	}
	switch (nr) {
	case SYS_membarrier:
		*r = make_membarrier(a);
		return true;
	case SYS_prctl:
		return answer_owned_prctl(a, there, r);
	case SYS_process_madvise:
		*r = advise_process(a);
		return true;
	case SYS_remap_file_pages:
		*r = remap_pages(a);
		return true;
	case SYS_pkey_mprotect: /* no key but -1 exists */
		*r = a[3] == -1 ? kbi_emulate_memory(SYS_mprotect, protect) : -EINVAL;
		return true;
	case SYS_mlock:
	case SYS_mlock2:
	case SYS_munlock:
	case SYS_mlockall:
	case SYS_munlockall:
		*r = kbi_emulate_lock(nr, a, there);
		return true;
	case SYS_setuid:
	case SYS_setgid:
	case SYS_setreuid:
	case SYS_setregid:
	case SYS_setresuid:
	case SYS_setresgid:
	case SYS_setfsuid:
	case SYS_setfsgid:
	case SYS_capset:
		*r = change_identity(nr, a);
		return true;
	/* a polling thread of the kernel's ends with the process that asked for it */
	case SYS_io_uring_setup:
		if (!a[1] || !kbi_sys_can_read((const void *)(a[1] + 8), 8) ||
			!(((const uint32_t *)a[1])[2] & SQ_POLL))
			return false;
		*r = there(nr, a);
		return true;
	default:
		return false;
	}
}

/* ---- before there are processes -------------------------------------------------------------- */

static const struct thing {
	const char *name, *why;
} things[] = {
	{ "anon_inode:[signalfd]",
		"the program has a signalfd, which gives the signals of one process" },
	{ "anon_inode:[userfaultfd]",
		"the program has a userfaultfd, which is about one address space" },
	{ "anon_inode:kvm-vm",
		"the program has a virtual machine of KVM's, which belongs to one address space" },
};

static bool is_thing(const char *name, void *why)
{
	for (unsigned i = 0; i < kbi_countof(things); i++)
		if (!strcmp(name, things[i].name)) {
			*(const char **)why = things[i].why;
			return true;
		}
	return false;
}

static const char *find_things(void)
{
	const char *why = NULL;

	kbi_fd_find(is_thing, &why);
	return why;
}

static bool has_vm_flag(const char *flags, const char *flag)
{
	for (; *flags; flags++)
		if (flags[0] == ' ' && flags[1] == flag[0] && flags[2] == flag[1])
			return true;
	return false;
}

/* Private memory that may be written becomes shared, and is then a new mapping; the rest stays, and
 * processes inherit it as children do. */
static void inspect_mapping(const struct kbi_maps_line *m, const char *name,
	const char *flags, void *arg)
{
	const char **why = arg;
	size_t bytes = m->to - m->from;
	bool moves = !m->shared && (m->protection & PROT_WRITE ||
		(!m->inode && !(m->protection & PROT_EXEC)));

	if (m->kernels)
		return;
	if (has_vm_flag(flags, "um") || has_vm_flag(flags, "uw") || has_vm_flag(flags, "ui"))
		*why = "some memory of the program is registered with a userfaultfd";
	else if (!strncmp(name, "/[aio]", 6))
		*why = "the program has called io_setup, whose ring belongs to one address space";
	else if (has_vm_flag(flags, "sl"))
		*why = "some memory of the program is sealed";
	if (has_vm_flag(flags, "wf") && kbi_memory_mark(m->from, bytes, KBI_MEMORY_WIPED, true))
		*why = "there are too many mappings that children are to have zeroed";
	if (has_vm_flag(flags, "dc") &&
		((!moves && kbi_sys(SYS_madvise, m->from, bytes, MADV_DOFORK)) ||
		 kbi_memory_mark(m->from, bytes, KBI_MEMORY_NOT_CHILDS, true)))
		*why = "some memory of the program is not for children (a device's)";
	if (moves && has_vm_flag(flags, "lo"))
		kbi_emulate_lock_note(m->from, m->to);
}

const char *kbi_emulate_owned_before(void)
{
	const char *why = find_things();

	if (!why)
		kbi_maps_each(inspect_mapping, &why);
	return why;
}
