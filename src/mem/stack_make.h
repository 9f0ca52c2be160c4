/* mem/stack_make.h - the record of a stack, the pool that all slots share (a slot is a VP's own
 * store of stacks, mem/stack.h), and the making of new stacks.
 *
 * Callers: mem/stack, core. Runs inside no-preempt (np) brackets, except where libc makes or ends a
 * control block: kbi_stack_add_block and kbi_stack_end_adopted may wait for libc's locks, whose
 * holders may be ready threads of the caller's VP, so np must be 0 there. Lock:
 * kbi_stack_pool.lock. Never switches. */
#ifndef KBI_STACK_MAKE_H
#define KBI_STACK_MAKE_H

#include "base/atom.h"
#include "libc/segment.h"
#include "libc/tcb.h"
#include "os/lock.h"

struct kbi_stack {
	char *low;      /* lowest usable byte; the guard page is below */
	size_t size;    /* usable bytes from low, up to the record or the TLS block */
	struct kbi_stack *next;
	uint32_t number; /* unique: gives the cache colour and the tid of the control block */
	uint8_t class;
	uint8_t has_tcb;
	bool user : 1;  /* the stack lies in the program's own memory */
	bool guarded : 1;
	uint8_t trimmed; /* 1: not used since its pages were given back */
	kbi_tpword tp;  /* the thread pointer of its control block, or 0 */
	/* The drop-in's: the stack and guard size that the program gave or asked for. They are kept
	 * here because the thread's own memory is reset when it has ended, and other threads may ask
	 * until it is joined. */
	union {
		char *given;        /* lowest address of the program's own memory */
		size_t guard_asked; /* for all other stacks: bytes */
	};
	size_t asked;       /* stack size, bytes */
	struct kbi_tcb tcb; /* only if has_tcb */
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct kbi_stack) <= 128,
	       "two lines, which each creation touches");

enum { KBI_STACK_CLASSES = 160 };

struct kbi_stack_chunk;

/* A class of stacks: a size, with or without control block. */
struct kbi_stack_kind {
	size_t size;
	bool tcb;
	/* the fields below: under the lock */
	struct kbi_stack *free; /* stacks used since they were last trimmed */
	struct kbi_stack *trimmed; /* stacks trimmed and not used since */
	struct kbi_stack *bare; /* laid out, but their control block could not be made */
	struct kbi_stack_chunk *unused; /* chunks with stacks that were never used */
	a32 n_free; /* stacks in free and trimmed; also read without the lock */
	a32 n_used; /* stacks in free; also read without the lock */
	int64_t credit; /* mapped stacks that are not promised to any thread */
};

/* One mapping of n stacks. The stacks from number `used` on were never touched and have no record
 * yet. */
struct kbi_stack_chunk {
	/* constant */
	uintptr_t base;
	size_t each;
	uint32_t n;
	/* under the lock */
	uint32_t used;
	struct kbi_stack_chunk *next; /* the next chunk of the class with unused stacks */
};

extern struct kbi_stack_pool {
	a32 lock;
	/* only grows, under the lock; the classes below it are constant except for their lists */
	a32 n_classes;
	struct kbi_stack_kind class[KBI_STACK_CLASSES];
	struct kbi_stack_chunk *chunk;
	a32 n_chunks;
	/* chunks: length of chunk[], constant; number: stacks made so far, under the lock */
	uint32_t chunks, number;
	a32 code;                /* 1: code may run on all stacks; under the lock */
} kbi_stack_pool;

/* The pool's lock: held briefly, once for a batch of stacks. */
static inline void kbi_stack_lock(void) { kbi_lock_take(&kbi_stack_pool.lock); }
static inline void kbi_stack_unlock(void) { kbi_lock_leave(&kbi_stack_pool.lock); }

/* Maps a chunk of stacks for the class. Returns false if there is no address space. Under the
 * lock. */
bool kbi_stack_map_ahead(struct kbi_stack_kind *c);
/* Returns a new stack of the class, without its control block as yet; NULL: no address space. */
struct kbi_stack *kbi_stack_fresh(int cls);
/* Gives back a stack whose control block could not be made: kbi_stack_fresh returns it to the next
 * caller. */
void kbi_stack_put_bare(struct kbi_stack *s);
/* Lays out a stack in the program's own memory, without a control block as yet. NULL: too small. */
struct kbi_stack *kbi_stack_adopt(void *low, size_t size);
/* Makes the control block of s. Returns false if there is no kernel thread or no memory for it, or,
 * in the program's memory, if libc could not end the block later. */
bool kbi_stack_add_block(struct kbi_stack *s);
/* Lets libc forget the control block in s, which is in the program's own memory: from now on the
 * program may reuse that memory. This takes a kernel thread for a moment: if the system has none
 * left, the caller waits. */
void kbi_stack_end_adopted(struct kbi_stack *s);

/* Called in the handler of a fault that code at `address` caused. Returns true if the address is on
 * one of our stacks and code may run there now: libc has made main's stack executable since the
 * last test (mem/stack_code), so all stacks become executable. */
bool kbi_stack_follow_code(uintptr_t address);
/* Returns the usable bytes of the stack whose guard contains the address; 0: none of our guards.
 * Async-signal-safe. */
size_t kbi_stack_guard_hit(uintptr_t address);

#endif
