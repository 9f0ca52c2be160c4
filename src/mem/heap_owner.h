/* mem/heap_owner.h - owners: each kernel thread that allocates has one. Only the owner gives out
 * the blocks of its slabs, with plain loads and stores; blocks that other threads free return to it
 * in magazines.
 *
 *   magazine  an array of pointers to blocks of one class and owner, filled upwards. A free block
 *             itself is never touched.
 *   bin       of a class: a magazine that allocation pops from, another that the owner's frees push
 *             to, and full magazines behind them
 *   outlet    a magazine that is being filled with blocks of another owner. Full, or displaced, it
 *             is posted to that owner's
 *   inbox     a stack of magazines: any thread pushes with one compare-and-swap, the owner takes
 *             all with one exchange
 * A block is in one place: with the program, in a magazine, or free in its slab (a bit in the
 * slab's record).
 *
 * Owner states (changed under heap_owner_life's lock, "life's lock"): OWNED by the kernel thread
 * whose slot holds it. ORPHAN: its thread has ended and its bins are empty; a thread that posts to
 * it also returns its inbox to the slabs; the next new kernel thread takes it over.
 *
 * kbi_owner_self, a word of TLS read with one instruction, gives the owner. A switch to a
 * lightweight thread with TLS of its own writes that thread's word (mem/heap_door), so the word
 * always names the owner of the kernel thread that runs the thread. This is sound because neither a
 * signal handler nor a preemption switches away from the heap's code: the runtime asks for the
 * code's address.
 *
 * Callers: heap, heap_hard, heap_stats, posix/malloc. Locks: life's, the magazines', then the
 * space's. Never switches. Model: model/heap.pml (post, inbox, orphans). */
#ifndef KBI_HEAP_OWNER_H
#define KBI_HEAP_OWNER_H

#include "mem/heap_slab.h"

struct kbi_magazine {
	struct kbi_magazine *next;
	union {
		struct {
			uint32_t tag;   /* posted: tag of its blocks' units */
			uint32_t count;
		};
		/* all NULL in a bin: this is the entry right below the first block */
		void *bottom[8 / sizeof(void *)];
	};
	void *block[KBI_MAGAZINE_BLOCKS];
} KBI_ALIGNED(KBI_MAGAZINE);
_Static_assert(sizeof(struct kbi_magazine) == KBI_MAGAZINE, "found from a pointer into it");

/* Two magazines, so that an allocation need not wait for the store of the free just before it:
 * processors then execute both at once. Empty: *take is NULL. Full: give == give_high. Without
 * magazines: take is kbi_owner_nothing, give and give_high are NULL. */
struct kbi_bin {
	void **take;      /* points to the last block, or to the bottom */
	void **give;      /* points to the last block, or to the bottom */
	void **give_high; /* points to the last entry */
	struct kbi_magazine *more; /* full magazines */
};
enum { KBI_BIN_SHIFT = sizeof(void *) == 8 ? 5 : 4, KBI_OUTLETS = 64 };
_Static_assert(sizeof(struct kbi_bin) == 1 << KBI_BIN_SHIFT,
	       "tags and sizes are shifted into offsets");
_Static_assert(KBI_HEAP_CLASSES << KBI_BIN_SHIFT < KBI_TAG_LARGE,
	       "a tag tells classes, large blocks and nothing apart");

struct kbi_outlet {
	uint32_t tag; /* 0: unused */
	void **top, **high;
};

/* An entry of a bin's take magazine in which NULL replaces the chosen block (heap_guard), so that
 * an allocation which reaches this entry takes the slow path. */
struct kbi_trap {
	void **at;      /* NULL: there is no trap */
	void *block;
	/* without a trap: the number of allocations from the bin up to and including the chosen one; 0:
	 * not yet drawn */
	uint32_t until;
};

enum kbi_owner_state {
	KBI_OWNER_OWNED,
	KBI_OWNER_ORPHAN,
	/* in a child of fork: its kernel thread does not exist there. It is never taken over */
	KBI_OWNER_LOST,
};

/* Counts for statistics. Written by the owner; other threads may read them. */
struct kbi_owner_count {
	uint64_t refills, flushes, slabs_made, slabs_ended, posts, posted, received;
};

struct kbi_owner {
	/* owner only */
	struct kbi_bin bin[KBI_HEAP_CLASSES]; /* first: a tag's low part is the offset of a bin */
	uint32_t key;             /* number << KBI_TAG_SHIFT; ~0: nothing is pushed to its bins */
	/* the owner itself; in hardened mode: the owner that has the blocks, while this one is an empty
	 * front that sends every call to heap_hard */
	struct kbi_owner *behind;
	struct kbi_slab *slabs[KBI_HEAP_CLASSES]; /* with free blocks */
	uint8_t n_more[KBI_HEAP_CLASSES];
	struct kbi_magazine *spare; /* empty magazines */
	uint32_t n_spare;
	struct kbi_owner_count count;
	struct kbi_trap trap[KBI_HEAP_CLASSES]; /* option heap_guard */
	/* hardened mode: the number of allocations up to and including the chosen one */
	uint32_t until;
	struct kbi_waiting *waiting; /* hardened mode: blocks that wait, see heap_hard */
	/* not 0: inside an operation that leaves records incomplete; such an owner is never taken
	 * over */
	a32 busy;
	struct kbi_outlet outlet[KBI_OUTLETS];
	/* under life's lock */
	struct kbi_owner *front; /* hardened mode */
	struct kbi_owner *next_orphan;
	/* any thread */
	a32 tid; /* the kernel thread; written under life's lock, and by kbi_life_renumber */
	aptr inbox KBI_ALIGNED(KBI_CACHE_LINE);
	a32 state; /* enum kbi_owner_state; written under life's lock */
} KBI_ALIGNED(KBI_CACHE_LINE);

extern __thread struct kbi_owner *kbi_owner_self
	__attribute__((tls_model("initial-exec"))) KBI_HIDDEN;
extern KBI_HIDDEN void *kbi_owner_nothing[1];
/* The value of kbi_owner_self before the first allocation: its bins are empty, and it owns no
 * block. */
extern KBI_HIDDEN struct kbi_owner kbi_owner_none;

/* Offset of the bin for sizes up to this number of grains. Before the first block all are 0: the
 * offset of the bin that is always empty. */
extern KBI_HIDDEN uint16_t kbi_owner_bin_for[KBI_HEAP_LOOKED_UP / KBI_HEAP_GRAIN + 1];
/* Fills the tables, before the first block. Under life's lock. */
void kbi_owner_setup(void);

/* Bracket an operation that nobody can continue if the kernel thread ends inside it. The barriers
 * are for the compiler only: a thread that has learned from the kernel that the owner's kernel
 * thread is gone sees all of its stores. */
static inline void kbi_owner_enter(struct kbi_owner *o)
{
	a_store_rlx(&o->busy, a_load_rlx(&o->busy) + 1);
	kbi_compiler_barrier();
}

static inline void kbi_owner_leave(struct kbi_owner *o)
{
	kbi_compiler_barrier();
	a_store_rlx(&o->busy, a_load_rlx(&o->busy) - 1);
}

/* Returns the magazine that a bin's or outlet's pointer is in. */
static inline struct kbi_magazine *kbi_owner_around(void **at)
{
	return (struct kbi_magazine *)((uintptr_t)at & ~(uintptr_t)(KBI_MAGAZINE - 1));
}

/* Exchanges the two magazines of o's bin b, which has nothing to take. Returns false if nothing has
 * been given back, or nothing was ever taken. Often a bin needs no more than this, so it is
 * inline. */
static inline bool kbi_owner_exchange(struct kbi_owner *o, struct kbi_bin *b)
{
	void **take = b->take, **give = b->give;
	uintptr_t high = (uintptr_t)b->give_high & (KBI_MAGAZINE - 1);

	/* give is NULL or the bottom */
	if (((uintptr_t)give & (KBI_MAGAZINE - 1)) < offsetof(struct kbi_magazine, block) ||
	    take == kbi_owner_nothing)
		return false;
	kbi_owner_enter(o);
	b->take = give;
	b->give = take;
	b->give_high = (void **)((uintptr_t)kbi_owner_around(take) + high);
	kbi_owner_leave(o);
	return true;
}

/* Returns whether b has nothing to take because the next block is chosen. */
static inline bool kbi_owner_is_trapped(const struct kbi_owner *o, const struct kbi_bin *b)
{
	return b->take == o->trap[b - o->bin].at;
}
/* Puts the chosen block back into its entry. */
void kbi_owner_untrap(struct kbi_owner *o, struct kbi_bin *b);
/* Chooses a block of b's take magazine, which was just loaded and from which a block was taken.
 * Called if kbi_guard.every is not 0. */
void kbi_owner_set_trap(struct kbi_owner *o, struct kbi_bin *b);
/* As kbi_owner_set_trap, where b's next block had been chosen and is still there. */
void kbi_owner_set_next_trap(struct kbi_owner *o, struct kbi_bin *b);
/* For hardened mode, which counts allocations: returns whether the current allocation is chosen. */
bool kbi_owner_chooses(struct kbi_owner *o);

/* Takes a block of class k from o; NULL: no memory. */
void *kbi_owner_take(struct kbi_owner *o, unsigned k);
/* Frees a block of o's own. */
void kbi_owner_give(struct kbi_owner *o, unsigned k, void *block);
/* Frees a block that another owner owns, in a unit with this tag. */
void kbi_owner_send(struct kbi_owner *o, uint32_t tag, void *block);
/* Returns all free blocks that o keeps to o's slabs, and blocks of other owners to these. */
void kbi_owner_flush(struct kbi_owner *o);
/* Returns the blocks that were posted to o to its slabs. Either o is an orphan and the caller holds
 * life's lock, or o is the caller's. */
void kbi_owner_receive(struct kbi_owner *o);

/* ---- the owners: heap_owner_life ------------------------------------------------------------- */

/* Hardened mode (mem/heap_hard): blocks are checked at each step, so no block is taken inline.
 * Constant after the first block. */
extern KBI_HIDDEN bool kbi_owner_hardened;

/* Returns the calling kernel thread's owner, which is made or taken over if there is none. NULL: no
 * memory. */
struct kbi_owner *kbi_life_begin(void);
/* Returns the blocks of the calling thread's bins to their slabs and makes its owner an orphan; the
 * thread may allocate again. */
void kbi_life_end(void);
/* Gives the owner of the kernel thread `was` to `now`: a killed process that has not ended yet has
 * a successor, which continues inside the interrupted operation. Takes no lock, because the killed
 * process may hold it. */
void kbi_life_renumber(uint32_t was, uint32_t now);
/* Tells that the calling thread's destructors will not report the end of its kernel thread, which
 * never ends. */
void kbi_life_stays(void);
/* true: takes all locks of the heap, so that no other thread is inside a section that a lock
 * protects; false: releases them. */
void kbi_life_hold(bool is);
/* Returns the magazines that were posted to orphans to their slabs. */
void kbi_life_tend_all(void);
/* Called once, in a constructor: from now on ends of kernel threads and forks are noticed. */
void kbi_life_watch(void);
/* The owner of a number, and the limit below which numbers are in use, from 1. NULL: it is being
 * made. */
struct kbi_owner *kbi_life_owner(uint32_t number);
uint32_t kbi_life_limit(void);

/* Returns the calling kernel thread's owner that has the blocks; NULL: no memory. */
static inline struct kbi_owner *kbi_life_mine(void)
{
	struct kbi_owner *o = kbi_owner_self->behind;

	return kbi_likely(o) ? o : kbi_life_begin();
}

#endif
