/* os/tcb.h - a thread's own control block and TLS, built by libc itself or as its exact copy, so that errno,
 * __thread, thread_local, locale, stdio's and mutexes' owner and the stack canary belong to the lightweight
 * thread and travel with it. It lies at the top of the thread's slab:
 *
 *   slab_low             stack_low + stack_size                                       slab_low + slab_size
 *   |  the thread's own stack  | libc's first frames (kept for destroy) | static TLS | control block |
 *
 * (where TLS lies above the thread pointer, the control block comes first). Two ways to build one:
 *   donor     libc's pthread_create on the slab; its kernel thread leaves by a bare exit, the block stays
 *   template  a copy of a never-run donor with its self pointers moved, on libc's own thread list
 * Callers: mem/stack, core. Calls real, sys, arch. Make, clear and destroy call code of libc that takes locks: the
 * allocator, the loader. Whoever holds such a lock may be ready on the caller's virtual processor. So the caller, if it
 * is a thread, has no np and may be left half-way; the gate's waiters wait as threads do. End_values and clear also run
 * the program's code, its destructors. */
#ifndef KBI_TCB_H
#define KBI_TCB_H

#include "arch/arch.h"
#include "base/atom.h"

/* The tid that libc reads in a block is this + id, turned round: above every pid, below FUTEX_TID_MASK and musl's flag. The
 * first of the ids have room for TURNS numbers each, one after the other for the threads that a block serves. */
#define KBI_TID_BASE 0x20000000u
enum {
	KBI_TCB_ID_LIMIT = 0x1f000000,
	KBI_TCB_ID_TURNING = 1 << 21,
	KBI_TCB_ID_TURNS = KBI_TCB_ID_LIMIT / 2 / KBI_TCB_ID_TURNING,
	KBI_TCB_ID_STILL = KBI_TCB_ID_TURNS * KBI_TCB_ID_TURNING, /* from here on they have one */
};

enum kbi_tcb_mode { KBI_TCB_AUTO, KBI_TCB_DONOR, KBI_TCB_TEMPLATE }; /* in the order of the option's words */

struct kbi_tcb {
	/* constant after make */
	void *tp;                        /* thread pointer to load when the thread runs */
	uintptr_t pthread;               /* what pthread_self() returns in it */
	char *stack_low;                 /* what is left for the thread's own stack, */
	size_t stack_size;               /* a multiple of 16 */
	char *slab_low;
	size_t slab_size;
	struct kbi_ctx frames;           /* libc's start of this thread, where destroy goes on */
	uint32_t id;                     /* changed by renumber */
	uint8_t exit;                    /* which exit stack its donor leaves on */
	bool copied;                     /* from the template */
	/* written by the kernel */
	a32 alive;                       /* 0 when the kernel thread that built or ends it has gone */
};

/* Constant after kbi_tcb_setup. How far the tids are turned round in this process: others, which share mutexes with it,
 * have threads with the same ids. */
extern KBI_HIDDEN uint32_t kbi_tcb_turned;
/* The same. False: only light threads; kbi_tcb_why says why. */
extern KBI_HIDDEN bool kbi_tcb_available;

/* Once, in the process's first thread, before VPs exist. self_tls: address in this thread of the initial-exec
 * variable that is to hold `self` in each block. 0; ENOTSUP: not on this machine or libc (kbi_tcb_why);
 * EAGAIN, ENOMEM. KBI_TCB_TEMPLATE falls back to donors where the template cannot be trusted. */
int kbi_tcb_setup(void *self_tls, enum kbi_tcb_mode mode);
/* Why there are no blocks, or why they are donors although the template was not ruled out; else "". */
const char *kbi_tcb_why(void);
/* KBI_TCB_DONOR or KBI_TCB_TEMPLATE: how blocks are made now. */
enum kbi_tcb_mode kbi_tcb_mode(void);
/* Bytes at the top of a slab that are not stack, the worst case over all alignments of its end. */
size_t kbi_tcb_overhead(void);
/* The smallest slab that kbi_tcb_make takes. */
size_t kbi_tcb_slab_min(void);

/* Builds a block at the top of a mapped, writable slab (any guard page lies below slab_low). Any thread, in
 * parallel. number: of no other living block. EAGAIN, ENOMEM: nothing is left behind;
 * EINVAL: the slab is too small. A copy takes 0.3 us and its page faults, a donor some 20 us. */
int kbi_tcb_make(struct kbi_tcb *t, void *slab_low, size_t slab_size, unsigned number, void *self);
/* The same, and destroy will not say EBUSY: a donor where copies cannot be ended, which takes a larger slab. ENOTSUP:
 * not with this libc, kbi_tcb_can_end is false. */
int kbi_tcb_make_to_end(struct kbi_tcb *t, void *slab_low, size_t slab_size, unsigned number, void *self);
bool kbi_tcb_can_end(void);
/* Only the destructors of what reset describes: for who must know that the program's code has ended. */
KBI_SWITCHES void kbi_tcb_end_values(struct kbi_tcb *t);
/* Called on the thread itself at its end: thread_local destructors, values left in libc's own pthread keys
 * with their destructors (before glibc 2.34 and with musl: without), locale, cancellation state; then TLS is
 * as in a new thread, errno 0. Some 30 ns when there is nothing to do. What libc's malloc keeps for the
 * thread stays for the block's next one, until destroy. */
KBI_SWITCHES void kbi_tcb_reset(struct kbi_tcb *t, void *self);
/* The two parts of it: the calls that may wait for a lock of libc's; and the rest, with np. A handler in between may
 * have made memory or values: they are to be cleared first, again. */
KBI_SWITCHES void kbi_tcb_clear(struct kbi_tcb *t);
bool kbi_tcb_is_clear(const struct kbi_tcb *t);
void kbi_tcb_finish(struct kbi_tcb *t, void *self);
/* Ends the block as libc ends a thread, before its slab is unmapped. Not on the block itself; after reset.
 * 0; EAGAIN: no kernel thread, the block is as before; EBUSY: not with this libc: pool the slab for ever. */
int kbi_tcb_destroy(struct kbi_tcb *t);

/* A kernel thread runs fn(arg) on the stack of the block, which nobody is on, with the block as its own, then ends. 0;
 * EAGAIN: no kernel thread. Nothing of libc's is taken or waited for. */
int kbi_tcb_run(struct kbi_tcb *t, void (*fn)(void *arg), void *arg);

/* The kernel thread that calls leaves the block that libc gave it, for good: another one will run on it. */
void kbi_tcb_leave_block(void);
/* The kernel no longer writes the caller's processor into its block. Before it runs threads, which may fork. */
void kbi_tcb_leave_rseq(void);
/* Lends the block a kernel tid for a libc call that hands it to the kernel; returns the one before, to be
 * given back the same way. By the thread itself. */
uint32_t kbi_tcb_settid(struct kbi_tcb *t, uint32_t tid);
/* A new thread gets the block, and does not run yet: nor does it have the tid of one that may be remembered. */
void kbi_tcb_renumber(struct kbi_tcb *t);
/* The number that libc reads in it now. */
uint32_t kbi_tcb_tid(const struct kbi_tcb *t);
/* What settid gives back at the end of such a call. */
static inline uint32_t kbi_tcb_own_tid(const struct kbi_tcb *t)
{
	uint32_t at = t->id + kbi_tcb_turned;

	return KBI_TID_BASE + (at < KBI_TCB_ID_LIMIT ? at : at - KBI_TCB_ID_LIMIT);
}

/* A check below `checks` of an own tid: it differs for threads that a descriptor serves one after the other, whether they
 * have the same block, which turns its tid, or another one. */
static inline uint32_t kbi_tcb_check(uint32_t own_tid, uint32_t checks)
{
	return (own_tid ^ own_tid / KBI_TCB_ID_TURNING) % checks;
}

/* How callers wait at the gate while a word has a value, and wake all that do: in the kernel, until a unit that knows
 * how threads wait says otherwise, before there are threads. */
extern KBI_HIDDEN struct kbi_tcb_waits {
	void (*wait)(a32 *word, uint32_t value);
	void (*wake)(a32 *word);
} kbi_tcb_waits;
/* Between freeze and thaw no block is made or destroyed: for fork and for set*id, which must not meet one
 * half-way. Waits for those under way, and for another's thaw. */
void kbi_tcb_freeze(void);
/* Until hurry(false) the calling kernel thread does not wait for a thaw: make says EBUSY. One at a time. */
void kbi_tcb_hurry(bool on);
void kbi_tcb_thaw(void);
/* In the child of fork, in place of thaw, with the block it runs on (NULL: a plain libc thread). All other blocks
 * are dead: libc has forgotten them; their slabs may be reused, not their blocks. */
void kbi_tcb_after_fork(struct kbi_tcb *t);

#endif
