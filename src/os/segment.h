/* os/segment.h - thread pointers by segment descriptors (x86-64): where the processor writes the FS base slowly, the next
 * thread's block is loaded by a selector of the process's local descriptor table, which costs half as much
 * (doc/why/switch.md). The kernel writes one descriptor a call, in 2 to 20 us, and a descriptor's base has 32 bits. So
 * blocks lie below 4 GiB as long as there is room, and one gets a descriptor when it has been loaded often. All others
 * are loaded as before.
 * A descriptor stays its block's: blocks of the pools are never unmapped. Only virtual processors of one address space
 * use this, for each process has a table of its own.
 * Callers: mem/stack, core. Calls arch, sys, option. */
#ifndef KBI_SEGMENT_H
#define KBI_SEGMENT_H

#include "arch/arch.h"
#include "base/atom.h"

enum {
	KBI_SEGMENTS = 4096,      /* the kernel copies them all for each new one */
	KBI_SEGMENT_LOADS = 256,  /* that many loads are saved time for what the call takes */
	KBI_SEGMENT_SHIFT = 48,
};

/* A block's thread pointer, and above it the selector of its descriptor, 0: it has none. */
typedef uintptr_t kbi_tpword;

static inline unsigned kbi_segment_selector(kbi_tpword w)
{
	return KBI_HAVE_SEGMENTS ? (unsigned)((uint64_t)w >> KBI_SEGMENT_SHIFT) : 0;
}

static inline char *kbi_segment_tp(kbi_tpword w)
{
	return (char *)(kbi_segment_selector(w) ? (uint32_t)w : w);
}

/* Read by kbi_segment_is_open. */
extern KBI_HIDDEN a8 kbi_segment_open;
/* There are descriptors to be had: from setup until the last one is given, or close. */
static inline bool kbi_segment_is_open(void) { return KBI_HAVE_SEGMENTS && a_load_rlx(&kbi_segment_open); }

/* Once, behind kbi_tp_init and the options. */
void kbi_segment_setup(void);
/* The system calls of the caller are filtered (seccomp). */
bool kbi_segment_filtered(void);
/* When it returns no such system call is made any more: the program is about to filter its own. */
void kbi_segment_close(void);
/* No more are given from here on, but one may be on its way. Also in a signal handler. */
void kbi_segment_stop(void);
/* Memory for blocks, as kbi_sys_map's, below 4 GiB. NULL: no room there, or of no use. One caller at a time. */
void *kbi_segment_map(size_t bytes);
/* A descriptor for the block, on any kernel thread: its word. tp itself: there is none to be had. */
kbi_tpword kbi_segment_give(void *tp);
/* In the child of fork: whoever was at it is not there any more. */
void kbi_segment_after_fork(void);

#endif
