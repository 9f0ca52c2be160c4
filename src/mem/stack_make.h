/* mem/stack_make.h - the record of a stack, the pool that all slots share, and the making of new stacks.
 * Callers: stack, core. Calls os. Inside np brackets, but where libc makes or ends a control block: kbi_stack_add_block and
 * kbi_stack_end_adopted may wait for libc's locks, held by threads that may be ready on the caller's VP: with np == 0. */
#ifndef KBI_STACK_MAKE_H
#define KBI_STACK_MAKE_H

#include "base/atom.h"
#include "os/lock.h"
#include "os/segment.h"
#include "os/tcb.h"

struct kbi_stack {
	char *low;      /* lowest usable byte; the guard page is below */
	size_t size;    /* usable bytes from low, up to the record or the TLS block */
	struct kbi_stack *next;
	uint32_t number; /* unique: colour, tid of the control block */
	uint8_t class;
	uint8_t has_tcb;
	bool user : 1;  /* the program's own memory */
	bool guarded : 1;
	uint8_t trimmed; /* since it was last used */
	kbi_tpword tp;  /* its own, or 0 */
	/* The drop-in's: the stack and guard that the program gave or asked for. Here, because the thread's own memory
	 * is as new again when it has ended, and threads may ask until it is joined */
	union {
		char *given;        /* of the program's own memory; */
		size_t guard_asked; /* else */
	};
	size_t asked;
	struct kbi_tcb tcb; /* only if has_tcb */
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct kbi_stack) <= 128, "two lines, which each creation touches");

enum { KBI_STACK_CLASSES = 160 };

struct kbi_stack_chunk;

/* A class: a size, with control block or without. */
struct kbi_stack_kind {
	size_t size;
	bool tcb;
	/* under the lock */
	struct kbi_stack *free; /* used since they were last trimmed; trimmed and not used: */
	struct kbi_stack *trimmed;
	struct kbi_stack *bare; /* laid out, but no control block could be had */
	struct kbi_stack_chunk *unused;
	a32 n_free; /* of both lists; read without the lock, too, as is how many are in `free`: */
	a32 n_used;
	int64_t credit; /* mapped stacks promised to nobody */
};

/* One mapping of n stacks. The stacks from `used` on were never touched: a bare address each. */
struct kbi_stack_chunk {
	/* constant */
	uintptr_t base;
	size_t each;
	uint32_t n;
	/* under the lock */
	uint32_t used;
	struct kbi_stack_chunk *next; /* of the same class, with unused stacks */
};

extern struct kbi_stack_pool {
	a32 lock;
	a32 n_classes;         /* classes below are constant but for their lists */
	struct kbi_stack_kind class[KBI_STACK_CLASSES];
	struct kbi_stack_chunk *chunk;
	a32 n_chunks;
	uint32_t chunks, number; /* room for so many, constant; stacks made so far */
	a32 code;                /* it may run on all of them; under the lock */
} kbi_stack_pool;

/* Short, taken for batches only. */
static inline void kbi_stack_lock(void) { kbi_lock_take(&kbi_stack_pool.lock); }
static inline void kbi_stack_unlock(void) { kbi_lock_leave(&kbi_stack_pool.lock); }

/* Under the lock: maps a chunk of stacks for the class; false: no address space. */
bool kbi_stack_map_ahead(struct kbi_stack_kind *c);
/* A new stack of the class, which has its control block still to get if it is of that kind. NULL: no address space. */
struct kbi_stack *kbi_stack_fresh(int cls);
/* Of the kind, and it could not get it: kbi_stack_fresh has it for the next caller. */
void kbi_stack_put_bare(struct kbi_stack *s);
/* A stack in the program's own memory, without a control block as yet. NULL: too small. */
struct kbi_stack *kbi_stack_adopt(void *low, size_t size);
/* Makes s's control block. False: no kernel thread or no memory for it; or, in the program's memory, none that could be
 * ended. */
bool kbi_stack_add_block(struct kbi_stack *s);
/* s is in the program's own memory, which the program may reuse from now on: so libc must forget the block in it. That
 * takes a kernel thread for a moment: where the system has none left, the caller waits for it. */
void kbi_stack_end_adopted(struct kbi_stack *s);

/* Code at this address faulted: true, it lies on one of our stacks, where code may run from now on, for libc has let it run
 * on its own since the last look (mem/stack_code). In a handler. */
bool kbi_stack_follow_code(uintptr_t address);
/* Usable bytes of the stack whose guard holds this address, 0: not one of our guards. Async-signal-safe. */
size_t kbi_stack_guard_hit(uintptr_t address);

#endif
