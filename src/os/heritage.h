/* os/heritage.h - what a child has of the kernel thread that makes it, and not of its process: where the one that makes it
 * for another is to give it the other's. Raw calls: no errno, no TLS.
 * Callers: core/body_birth, body_thread, body_fork; posix/bind. */
#ifndef KBI_HERITAGE_H
#define KBI_HERITAGE_H

#include <signal.h>

#include "os/cpu.h"
#include "os/sys.h"

enum { KBI_HERITAGE_GROUPS = 256 };

/* Is the calling thread's kernel thread not as the process's others are, by what the thread has made of it or its
 * creator had? Kernel threads and processes for the thread are made by this one, for the runtime by others. */
enum kbi_heritage_kind {
	KBI_HERITAGE_COMMON,
	KBI_HERITAGE_GIVEN,  /* another kernel thread can take all of it */
	KBI_HERITAGE_SEALED, /* not so: a filter, a namespace */
};
extern KBI_HIDDEN enum kbi_heritage_kind (*kbi_heritage_own)(void); /* posix/bind's; NULL: nobody's is */
static inline enum kbi_heritage_kind kbi_heritage_kind(void)
{
	return kbi_heritage_own ? kbi_heritage_own() : KBI_HERITAGE_COMMON;
}

struct kbi_heritage {
	struct kbi_sys_schedule sched;
	struct kbi_cpus cpus;
	long slack, io, personality, modest; /* no_new_privs */
	char name[16];
	stack_t alternate;
	/* who it is: compared, never given */
	struct {
		uint32_t user[3], group[3], groups[KBI_HERITAGE_GROUPS], capability[6];
		long n_groups, bits;
	} identity;
};

/* The calling kernel thread's. */
void kbi_heritage_read(struct kbi_heritage *h);
/* Is the caller's identity the same: users, groups, capabilities? */
bool kbi_heritage_is_mine(const struct kbi_heritage *h);
/* The caller, a child that has just been made, has all the rest, so far as it may. */
void kbi_heritage_take(const struct kbi_heritage *h);

#endif
