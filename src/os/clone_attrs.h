/* os/clone_attrs.h - attributes that a child inherits from the kernel thread that makes it, and not
 * from its process: scheduling, CPUs, timer slack, I/O priority, personality, name, alternate
 * signal stack, identity. Where one kernel thread makes a child for another, the child takes over
 * the attributes of the second.
 * Callers: core/process_birth, core/process_fork, core/worker_thread, core/place; posix/bind. Raw
 * system calls: no errno, no TLS, no locks, no switch. */
#ifndef KBI_CLONE_ATTRS_H
#define KBI_CLONE_ATTRS_H

#include <signal.h>

#include "os/cpu.h"
#include "os/sys.h"

enum { KBI_CLONE_ATTRS_GROUPS = 256 };

/* Tells whether the calling thread's kernel thread differs from the process's other kernel threads
 * by attributes that the thread or its creator has set. Such a kernel thread makes kernel threads
 * and processes for its thread itself; for other threads the runtime's kernel threads make them. */
enum kbi_clone_attrs_kind {
	KBI_CLONE_ATTRS_COMMON,
	KBI_CLONE_ATTRS_GIVEN, /* another kernel thread can take all of the attributes */
	KBI_CLONE_ATTRS_SEALED, /* another kernel thread cannot: a filter, a namespace */
};
/* set by posix/bind; NULL: no kernel thread differs */
extern KBI_HIDDEN enum kbi_clone_attrs_kind (*kbi_clone_attrs_own)(void);
static inline enum kbi_clone_attrs_kind kbi_clone_attrs_kind(void)
{
	return kbi_clone_attrs_own ? kbi_clone_attrs_own() : KBI_CLONE_ATTRS_COMMON;
}

struct kbi_clone_attrs {
	struct kbi_sys_schedule sched;
	struct kbi_cpus cpus;
	long slack, io, personality, modest; /* no_new_privs */
	char name[16];
	stack_t alternate;
	/* the identity: compared, never given */
	struct {
		uint32_t user[3], group[3], groups[KBI_CLONE_ATTRS_GROUPS], capability[6];
		long n_groups, bits;
	} identity;
};

/* Reads the attributes of the calling kernel thread. */
void kbi_clone_attrs_read(struct kbi_clone_attrs *h);
/* Returns true if the caller has the identity in h: users, groups, capabilities. */
bool kbi_clone_attrs_is_mine(const struct kbi_clone_attrs *h);
/* Gives the remaining attributes to the caller, a child that has just been made, as far as the
 * kernel permits. */
void kbi_clone_attrs_take(const struct kbi_clone_attrs *h);

#endif
