/* mem/heap_owner.h - owners: each kernel thread that allocates is one. It alone gives out the blocks of its slabs, with
 * plain loads and stores; blocks that others free come back to it in magazines.
 *
 * magazine  an array of pointers to blocks of one class and owner, filled upwards. No free block is touched.
 * bin       of a class: a magazine that allocation pops from, another that own frees push on, and full ones behind
 * outlet    a magazine being filled with another owner's blocks. Full, or displaced, it is posted to
 * inbox     of that owner: a stack of magazines; anybody pushes with one CAS, the owner takes all with one exchange
 *
 * A block is in one place: with the program, in a magazine, or free in its slab (a bit in the slab's record).
 * Owner states (changed under heap_owner_life's lock): OWNED by the kernel thread whose slot says so; ORPHAN: its thread
 * has ended, bins are empty, whoever posts to it returns what comes, and the next new kernel thread takes it over.
 *
 * Which owner: kbi_owner_self, a word of TLS, read with one instruction. Lightweight threads with TLS of their own have
 * theirs rewritten when they are switched to (mem/heap_door), so it is the kernel thread's that runs them. That is sound
 * because no code of the heap is left by a switch, a handler's or a preemption's: the runtime asks for the address.
 * Model: model/heap.pml (post, inbox, orphans). */
#ifndef KBI_HEAP_OWNER_H
#define KBI_HEAP_OWNER_H

#include "mem/heap_slab.h"

struct kbi_magazine {
	struct kbi_magazine *next;
	union {
		struct {
			uint32_t tag;   /* of its blocks' units; the posted ones' */
			uint32_t count;
		};
		void *bottom[8 / sizeof(void *)]; /* all NULL in a bin: right below the first */
	};
	void *block[KBI_MAGAZINE_BLOCKS];
} KBI_ALIGNED(KBI_MAGAZINE);
_Static_assert(sizeof(struct kbi_magazine) == KBI_MAGAZINE, "found from a pointer into it");

/* Two magazines, so that an allocation need not wait for what the free just before it stores: processors then have the
 * two under way at once. Empty: *take is NULL; full: give == give_high.
 * No magazine: take is kbi_owner_nothing, give and give_high NULL. */
struct kbi_bin {
	void **take;      /* the last block, or the bottom */
	void **give;      /* the last block, or the bottom */
	void **give_high; /* the last place */
	struct kbi_magazine *more; /* full ones */
};
enum { KBI_BIN_SHIFT = sizeof(void *) == 8 ? 5 : 4, KBI_OUTLETS = 64 };
_Static_assert(sizeof(struct kbi_bin) == 1 << KBI_BIN_SHIFT, "tags and sizes are shifted into offsets");
_Static_assert(KBI_HEAP_CLASSES << KBI_BIN_SHIFT < KBI_TAG_LARGE, "a tag tells classes, large blocks and nothing apart");

struct kbi_outlet {
	uint32_t tag; /* 0: unused */
	void **top, **high;
};

/* A place in a bin's magazine to take from where NULL stands for the block that is chosen, so that a taker that
 * comes down to it takes the slow way. */
struct kbi_trap {
	void **at;      /* NULL: there is none */
	void *block;
	uint32_t until; /* none: so many more are taken from the bin, and the last of them is chosen; 0: not yet known */
};

enum kbi_owner_state {
	KBI_OWNER_OWNED,
	KBI_OWNER_ORPHAN,
	KBI_OWNER_LOST, /* in a child of fork: of a kernel thread that is not there. Nobody ever takes it over */
};

/* What happened, for statistics; the owner's, others peep. */
struct kbi_owner_count {
	uint64_t refills, flushes, slabs_made, slabs_ended, posts, posted, received;
};

struct kbi_owner {
	/* owner only */
	struct kbi_bin bin[KBI_HEAP_CLASSES]; /* first: a tag's low part is an offset to one */
	uint32_t key;             /* number << KBI_TAG_SHIFT; ~0 where nothing is pushed on bins */
	/* itself; in hardened mode the one with the blocks, in front of which this one is empty */
	struct kbi_owner *behind;
	struct kbi_slab *slabs[KBI_HEAP_CLASSES]; /* with free blocks */
	uint8_t n_more[KBI_HEAP_CLASSES];
	struct kbi_magazine *spare; /* empty ones */
	uint32_t n_spare;
	struct kbi_owner_count count;
	struct kbi_trap trap[KBI_HEAP_CLASSES]; /* option heap_guard */
	uint32_t until; /* hardened mode: so many more are taken, and the last of them is chosen */
	struct kbi_waiting *waiting; /* hardened mode: heap_hard's */
	a32 busy; /* within something that is not whole in between: never taken over */
	struct kbi_outlet outlet[KBI_OUTLETS];
	/* under life's lock */
	struct kbi_owner *front; /* hardened mode */
	struct kbi_owner *next_orphan;
	/* any thread */
	a32 tid; /* the kernel thread; under life's lock, but for kbi_life_renumber */
	aptr inbox KBI_ALIGNED(KBI_CACHE_LINE);
	a32 state; /* enum kbi_owner_state; written under life's lock */
} KBI_ALIGNED(KBI_CACHE_LINE);

extern __thread struct kbi_owner *kbi_owner_self __attribute__((tls_model("initial-exec"))) KBI_HIDDEN;
extern KBI_HIDDEN void *kbi_owner_nothing[1];
/* Everybody's before the first allocation: its bins are empty and no block is its. */
extern KBI_HIDDEN struct kbi_owner kbi_owner_none;

/* Offset of the bin for sizes up to so many grains; all 0, that of the bin that is always empty, before the first block. */
extern KBI_HIDDEN uint16_t kbi_owner_bin_for[KBI_HEAP_LOOKED_UP / KBI_HEAP_GRAIN + 1];
void kbi_owner_setup(void);

/* Around what nobody can go on with if the kernel thread ends there. The barrier is for the compiler: who finds the thread
 * gone sees its stores. */
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

/* The magazine that a bin's or outlet's pointer is in. */
static inline struct kbi_magazine *kbi_owner_around(void **at)
{
	return (struct kbi_magazine *)((uintptr_t)at & ~(uintptr_t)(KBI_MAGAZINE - 1));
}

/* o's bin b has nothing to take: its two magazines change places. False: nothing has been given back, or nothing taken
 * before. Often that is all that a bin needs, so it is short. */
static inline bool kbi_owner_exchange(struct kbi_owner *o, struct kbi_bin *b)
{
	void **take = b->take, **give = b->give;
	uintptr_t high = (uintptr_t)b->give_high & (KBI_MAGAZINE - 1);

	/* NULL, or the bottom */
	if (((uintptr_t)give & (KBI_MAGAZINE - 1)) < offsetof(struct kbi_magazine, block) || take == kbi_owner_nothing)
		return false;
	kbi_owner_enter(o);
	b->take = give;
	b->give = take;
	b->give_high = (void **)((uintptr_t)kbi_owner_around(take) + high);
	kbi_owner_leave(o);
	return true;
}

/* b has nothing to take because the next block is chosen. */
static inline bool kbi_owner_is_trapped(const struct kbi_owner *o, const struct kbi_bin *b)
{
	return b->take == o->trap[b - o->bin].at;
}
/* That block is there again. */
void kbi_owner_untrap(struct kbi_owner *o, struct kbi_bin *b);
/* b's magazine to take from was loaded, and a block taken: another in it may be chosen. If kbi_guard.every. */
void kbi_owner_set_trap(struct kbi_owner *o, struct kbi_bin *b);
/* The block that b had next was chosen and is still there: likewise. */
void kbi_owner_set_next_trap(struct kbi_owner *o, struct kbi_bin *b);
/* The same where blocks are counted: the block that is taken now is chosen. */
bool kbi_owner_chooses(struct kbi_owner *o);

/* A block of class k from o; NULL: no memory. */
void *kbi_owner_take(struct kbi_owner *o, unsigned k);
/* A block of o's own. */
void kbi_owner_give(struct kbi_owner *o, unsigned k, void *block);
/* A block of another owner's, in a unit of that tag. */
void kbi_owner_send(struct kbi_owner *o, uint32_t tag, void *block);
/* All that o keeps goes where it belongs: to its slabs, and to other owners. */
void kbi_owner_flush(struct kbi_owner *o);
/* What was posted to o goes to its slabs. o is an orphan and the caller holds life's lock, or o is the caller's. */
void kbi_owner_receive(struct kbi_owner *o);

/* ---- which there are: heap_owner_life -------------------------------------------------------- */

/* Hardened mode (mem/heap_hard): blocks are checked at each step, so nothing may be taken in line. Constant after the
 * first block. */
extern KBI_HIDDEN bool kbi_owner_hardened;

/* The calling kernel thread's, made or taken over now if it has none. NULL: no memory. */
struct kbi_owner *kbi_life_begin(void);
/* Its bins go back to where they belong; the thread may allocate again. */
void kbi_life_end(void);
/* The kernel thread `was` is `now` from now on: a process that was killed, and has not ended yet, has a successor, which
 * goes on within what it was doing. Takes no lock: the killed one may hold it. */
void kbi_life_renumber(uint32_t was, uint32_t now);
/* The calling thread's destructors tell nothing of its kernel thread's end, which never comes. */
void kbi_life_stays(void);
/* While it is held nobody else is within anything that a lock protects. */
void kbi_life_hold(bool is);
/* What was posted to orphans returns to their slabs. */
void kbi_life_tend_all(void);
/* Once, in a constructor: ends of kernel threads are noticed, and forks. */
void kbi_life_watch(void);
/* By number; those in use are below the limit, from 1. NULL: being made. */
struct kbi_owner *kbi_life_owner(uint32_t number);
uint32_t kbi_life_limit(void);

/* The calling kernel thread's with the blocks. */
static inline struct kbi_owner *kbi_life_mine(void)
{
	struct kbi_owner *o = kbi_owner_self->behind;

	return kbi_likely(o) ? o : kbi_life_begin();
}

#endif
