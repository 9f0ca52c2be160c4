/* os/clone_attrs.c - reads and sets what a kernel thread passes on to its children. Contract in
 * clone_attrs.h. */
#include "os/clone_attrs.h"

#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>

#include "os/sys.h"

/* IOPRIO_WHO_PROCESS */
enum { RESET_ON_FORK = 1 /* flag of the schedule */, IO_OF_PROCESS = 1 };

enum kbi_clone_attrs_kind (*kbi_clone_attrs_own)(void);

static void read_identity(struct kbi_clone_attrs *h)
{
	struct __user_cap_header_struct version = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint32_t *u = h->identity.user, *g = h->identity.group;

	kbi_sys(SYS_getresuid, &u[0], &u[1], &u[2]);
	kbi_sys(SYS_getresgid, &g[0], &g[1], &g[2]);
	h->identity.n_groups = kbi_sys(SYS_getgroups, KBI_CLONE_ATTRS_GROUPS, h->identity.groups);
	kbi_sys(SYS_capget, &version, h->identity.capability);
	h->identity.bits = kbi_sys(SYS_prctl, PR_GET_SECUREBITS);
}

void kbi_clone_attrs_read(struct kbi_clone_attrs *h)
{
	memset(h, 0, sizeof *h);
	kbi_sys(SYS_sched_getattr, 0, &h->sched, sizeof h->sched, 0);
	kbi_cpus_read(0, &h->cpus);
	h->slack = kbi_sys(SYS_prctl, PR_GET_TIMERSLACK);
	h->io = kbi_sys(SYS_ioprio_get, IO_OF_PROCESS, 0);
	h->personality = kbi_sys(SYS_personality, 0xffffffffu);
	h->modest = kbi_sys(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	kbi_sys(SYS_prctl, PR_GET_NAME, h->name);
	kbi_sys(SYS_sigaltstack, NULL, &h->alternate);
	read_identity(h);
}

bool kbi_clone_attrs_is_mine(const struct kbi_clone_attrs *h)
{
	struct kbi_clone_attrs mine;

	memset(&mine.identity, 0, sizeof mine.identity);
	read_identity(&mine);
	return !memcmp(&mine.identity, &h->identity, sizeof mine.identity);
}

void kbi_clone_attrs_take(const struct kbi_clone_attrs *h)
{
	struct kbi_clone_attrs mine;

	kbi_clone_attrs_read(&mine);
	if (!(h->sched.flags & RESET_ON_FORK) && memcmp(&mine.sched, &h->sched, sizeof mine.sched))
		kbi_sys(SYS_sched_setattr, 0, &h->sched, 0);
	if (h->cpus.bytes > 0 && memcmp(mine.cpus.bits, h->cpus.bits, sizeof mine.cpus.bits))
		kbi_cpus_give(0, &h->cpus);
	if (mine.slack != h->slack)
		kbi_sys(SYS_prctl, PR_SET_TIMERSLACK, h->slack);
	if (mine.io != h->io)
		kbi_sys(SYS_ioprio_set, IO_OF_PROCESS, 0, h->io);
	if (mine.personality != h->personality)
		kbi_sys(SYS_personality, h->personality);
	if (mine.modest != h->modest)
		kbi_sys(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (memcmp(mine.name, h->name, sizeof mine.name))
		kbi_sys(SYS_prctl, PR_SET_NAME, h->name);
	kbi_sys(SYS_sigaltstack, &h->alternate, NULL);
}
