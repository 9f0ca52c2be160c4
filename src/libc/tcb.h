/* libc/tcb.h - a thread's own control block and TLS, built by libc itself or as an exact copy. So
 * errno, __thread, thread_local, locale, the owner in stdio's locks and in mutexes, and the stack
 * canary belong to the lightweight thread and travel with it. The block lies at the top of the
 * thread's slab:
 *
 *   slab_low             stack_low + stack_size                         slab_low + slab_size
 *   | the thread's own stack | libc's first frames (for destroy) | static TLS | control block |
 *
 * (where TLS lies above the thread pointer, the control block comes first). A block is built in
 * either of two ways:
 *   donor     libc's pthread_create on the slab; its kernel thread leaves by a bare exit, the
 *             block stays
 *   template  a copy of a never-run donor with its self pointers moved, on libc's own list of
 *             threads
 * Callers: mem/stack_make, core, posix. Calls real, os, arch. Make, clear and destroy call code of
 * libc that takes locks (the allocator's, the loader's). A holder of such a lock may be ready on
 * the caller's virtual processor: so the caller, if it is a thread, has np 0 and may be preempted
 * half-way; waiters at the gate wait as threads do. End_values and clear also run the program's
 * code, its destructors. */
#ifndef KBI_TCB_H
#define KBI_TCB_H

#include "arch/arch.h"
#include "base/atom.h"

/* The tid that libc reads in a block is KBI_TID_BASE + id, rotated by kbi_tcb_turned: above every
 * pid, below FUTEX_TID_MASK and musl's flag. Each of the first KBI_TCB_ID_TURNING blocks has TURNS
 * ids, which the threads that it serves get one after another. */
#define KBI_TID_BASE 0x20000000u
enum {
	KBI_TCB_ID_LIMIT = 0x1f000000,
	KBI_TCB_ID_TURNING = 1 << 21,
	KBI_TCB_ID_TURNS = KBI_TCB_ID_LIMIT / 2 / KBI_TCB_ID_TURNING,
	/* from here on a block has a single id */
	KBI_TCB_ID_STILL = KBI_TCB_ID_TURNS * KBI_TCB_ID_TURNING,
};

/* in the order of the option's words */
enum kbi_tcb_mode { KBI_TCB_AUTO, KBI_TCB_DONOR, KBI_TCB_TEMPLATE };

struct kbi_tcb {
	/* constant after make */
	void *tp;                        /* thread pointer to load when the thread runs */
	uintptr_t pthread;               /* the result of pthread_self() in the thread */
	char *stack_low;                 /* the thread's own stack */
	size_t stack_size;               /* a multiple of 16 */
	char *slab_low;
	size_t slab_size;
	struct kbi_ctx frames;           /* libc's start of this thread, where destroy goes on */
	uint32_t id;                     /* changed by renumber, else constant */
	uint8_t exit;                    /* index of the exit stack that its donor leaves on */
	bool copied;                     /* made from the template */
	/* written by the kernel */
	/* 0 once the kernel thread that built the block, or ends it, has gone */
	a32 alive;
};

/* Constant after kbi_tcb_setup: how far ids are rotated in this process. Processes that share
 * mutexes have threads with the same ids. */
extern KBI_HIDDEN uint32_t kbi_tcb_turned;
/* Constant after kbi_tcb_setup. False: only light threads are possible; kbi_tcb_why tells the
 * reason. */
extern KBI_HIDDEN bool kbi_tcb_available;

/* Prepares the making of blocks. Call once, in the process's first thread, before VPs exist.
 * self_tls: address in this thread of the initial-exec variable that holds `self` in each block.
 * Returns 0; ENOTSUP: not on this machine or with this libc (kbi_tcb_why); EAGAIN, ENOMEM.
 * KBI_TCB_TEMPLATE falls back to donors where the template cannot be trusted. */
int kbi_tcb_setup(void *self_tls, enum kbi_tcb_mode mode);
/* Returns why there are no blocks, or why they are donors although the template was not ruled out;
 * else "". */
const char *kbi_tcb_why(void);
/* Returns how blocks are made now: KBI_TCB_DONOR or KBI_TCB_TEMPLATE. */
enum kbi_tcb_mode kbi_tcb_mode(void);
/* Returns the bytes at the top of a slab that are not stack: the worst case over all alignments of
 * its end. */
size_t kbi_tcb_overhead(void);
/* Returns the size in bytes of the smallest slab that kbi_tcb_make takes. */
size_t kbi_tcb_slab_min(void);

/* Builds a block at the top of a mapped, writable slab (a guard page would lie below slab_low). Any
 * thread, in parallel. number: of no other living block. Returns 0; EAGAIN, ENOMEM: nothing is left
 * behind; EINVAL: the slab is too small; EBUSY: see kbi_tcb_hurry; ENOTSUP. A copy takes 0.3 us and
 * its page faults, a donor some 20 us. */
int kbi_tcb_make(struct kbi_tcb *t, void *slab_low, size_t slab_size, unsigned number, void *self);
/* As kbi_tcb_make, for a block that destroy can end (never EBUSY): a donor where copies cannot be
 * ended, which takes a larger slab. ENOTSUP: not with this libc, where kbi_tcb_can_end is false. */
int kbi_tcb_make_to_end(struct kbi_tcb *t, void *slab_low, size_t slab_size,
	unsigned number, void *self);
bool kbi_tcb_can_end(void);
/* Runs only the destructors that reset runs: for a caller that must know that the program's code
 * has ended. */
KBI_SWITCHES void kbi_tcb_end_values(struct kbi_tcb *t);
/* Ends a thread's use of its block. Called on the thread itself at its end. Runs thread_local
 * destructors and the destructors of values in libc's own pthread keys (before glibc 2.34 and with
 * musl the values go without), resets locale and cancellation state; then TLS is as in a new
 * thread, errno 0. Takes some 30 ns when there is nothing to do. The cache that libc's malloc keeps
 * for the thread stays for the block's next thread, until destroy. */
KBI_SWITCHES void kbi_tcb_reset(struct kbi_tcb *t, void *self);
/* The two parts of reset: `clear` makes the calls that may wait for a lock of libc's; `finish` does
 * the rest, with np. A handler between them may have made memory or values: if is_clear is false,
 * clear is to be called again. */
KBI_SWITCHES void kbi_tcb_clear(struct kbi_tcb *t);
bool kbi_tcb_is_clear(const struct kbi_tcb *t);
void kbi_tcb_finish(struct kbi_tcb *t, void *self);
/* Ends the block as libc ends a thread, before its slab is unmapped. Not on the block itself; after
 * reset. Returns 0; EAGAIN: no kernel thread, the block is as before; EBUSY: not with this libc,
 * keep the slab in a pool for ever. */
int kbi_tcb_destroy(struct kbi_tcb *t);

/* Runs fn(arg) in a new kernel thread on the stack of the block, which no thread uses, with the
 * block as its own; then the kernel thread ends. Returns 0; EAGAIN: no kernel thread. Takes no lock
 * of libc's and waits for nothing. */
int kbi_tcb_run(struct kbi_tcb *t, void (*fn)(void *arg), void *arg);

/* Detaches the calling kernel thread from the block that libc gave it, for good: another kernel
 * thread will run on it. */
void kbi_tcb_leave_block(void);
/* Stops the kernel from writing the caller's processor into its block (rseq). Call before the
 * kernel thread runs threads, which may fork. */
void kbi_tcb_leave_rseq(void);
/* Lends the block a kernel tid for a libc call that passes the tid to the kernel. Returns the
 * previous tid, which the thread gives back by a second call. Called by the thread itself. */
uint32_t kbi_tcb_settid(struct kbi_tcb *t, uint32_t tid);
/* Gives the block a new tid for its next thread, which does not run yet: a tid that may be
 * remembered is not reused. */
void kbi_tcb_renumber(struct kbi_tcb *t);
/* Returns the tid that libc reads in the block now. */
uint32_t kbi_tcb_tid(const struct kbi_tcb *t);
/* Returns the block's own tid, which settid gives back at the end of such a call. */
static inline uint32_t kbi_tcb_own_tid(const struct kbi_tcb *t)
{
	uint32_t at = t->id + kbi_tcb_turned;

	return KBI_TID_BASE + (at < KBI_TCB_ID_LIMIT ? at : at - KBI_TCB_ID_LIMIT);
}

/* Returns a check below `checks` for an own tid. It differs between threads that a descriptor
 * serves one after another, whether they have the same block, which changes its tid, or another
 * block. */
static inline uint32_t kbi_tcb_check(uint32_t own_tid, uint32_t checks)
{
	return (own_tid ^ own_tid / KBI_TCB_ID_TURNING) % checks;
}

/* How callers wait at the gate while a word has a value, and how all waiters are woken: in the
 * kernel, until posix/fork sets its functions, before there are threads. */
extern KBI_HIDDEN struct kbi_tcb_waits {
	void (*wait)(a32 *word, uint32_t value);
	void (*wake)(a32 *word);
} kbi_tcb_waits;
/* Between freeze and thaw no block is made or destroyed: for fork and for set*id, which must not
 * find a block half-made. Waits for those under way, and for another caller's thaw. */
void kbi_tcb_freeze(void);
/* Until hurry(false) the calling kernel thread does not wait for a thaw: make returns EBUSY. One
 * kernel thread at a time. */
void kbi_tcb_hurry(bool on);
void kbi_tcb_thaw(void);
/* In the child of fork, in place of thaw. t: the block that the caller runs on; NULL: a plain
 * thread of libc's. All remaining blocks are dead: libc has forgotten them. Their slabs may be
 * reused, their blocks may not. */
void kbi_tcb_after_fork(struct kbi_tcb *t);

#endif
