/* libc/segment.h - thread pointers by segment descriptors (x86-64). Where the processor writes the
 * FS base slowly, the next thread's block is loaded by a selector of the process's local descriptor
 * table, which costs half as much (doc/why/switch.md). The kernel writes one descriptor a call, in
 * 2 to 20 us, and a descriptor's base has 32 bits. So blocks lie below 4 GiB as long as there is
 * room, and a block gets a descriptor when it has been loaded often. The rest are loaded without.
 * A descriptor stays with its block: blocks of the pools are never unmapped. Only virtual
 * processors of a single address space use descriptors, because each process has a table of its
 * own.
 * Callers: mem/stack_make, core, posix/attribute, the command. Calls arch, os, option. A lock
 * (os/lock); no switch. */
#ifndef KBI_SEGMENT_H
#define KBI_SEGMENT_H

#include "arch/arch.h"
#include "base/atom.h"

enum {
	/* at most; the kernel copies the whole table for each new descriptor */
	KBI_SEGMENTS = 4096,
	KBI_SEGMENT_LOADS = 256,  /* so many loads save as much time as the call takes */
	KBI_SEGMENT_SHIFT = 48,
};

/* A block's thread pointer and, above it, the selector of its descriptor; 0: it has no
 * descriptor. */
typedef uintptr_t kbi_tpword;

static inline unsigned kbi_segment_selector(kbi_tpword w)
{
	return KBI_HAVE_SEGMENTS ? (unsigned)((uint64_t)w >> KBI_SEGMENT_SHIFT) : 0;
}

static inline char *kbi_segment_tp(kbi_tpword w)
{
	return (char *)(kbi_segment_selector(w) ? (uint32_t)w : w);
}

/* Read by kbi_segment_is_open; written by setup, close, stop and the last give. */
extern KBI_HIDDEN a8 kbi_segment_open;
/* Returns true while descriptors are available: from setup until the last is given, or close. */
static inline bool kbi_segment_is_open(void)
{
	return KBI_HAVE_SEGMENTS && a_load_rlx(&kbi_segment_open);
}

/* Opens the table if it pays. Call once, after kbi_tp_init and the options. */
void kbi_segment_setup(void);
/* Returns true if the caller's system calls are filtered (seccomp). */
bool kbi_segment_filtered(void);
/* Ends the making of descriptors: when it returns no such system call is made any more. The program
 * is about to filter its system calls. */
void kbi_segment_close(void);
/* As close, but a call may still be under way. Async-signal-safe. */
void kbi_segment_stop(void);
/* Maps memory for blocks below 4 GiB, as kbi_sys_map. Returns NULL if there is no room, or it is of
 * no use. One caller at a time. */
void *kbi_segment_map(size_t bytes);
/* Makes a descriptor for the block, on any kernel thread. Returns the word; tp itself if no
 * descriptor is available. */
kbi_tpword kbi_segment_give(void *tp);
/* In the child of fork: resets the lock, whose holder does not exist here. */
void kbi_segment_after_fork(void);

#endif
