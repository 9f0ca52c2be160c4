/* core/descriptor.h - the descriptor of a thread: a task with an entry, a stack, a result, keys and a name.
 * Descriptors are type-stable for ever, so that a stale pointer in a wake-up finds one, and numbered.
 * Callers: core, posix. */
#ifndef KBI_DESCRIPTOR_H
#define KBI_DESCRIPTOR_H

#include "base/heap.h"
#include "base/san.h"
#include "core/task.h"
#include "mem/stack.h"

struct kbi_cell;
struct kbi_rest;
struct kbi_watch;

/* The drop-in's signals, as sets: bit n - 1 for signal n. Here, because a descriptor outlives its thread. */
struct kbi_signals {
	a64 mask;    /* those it blocks; written by itself */
	a64 pending; /* those that were sent to it and wait; any thread */
	a64 wanted;  /* those it waits for in sigwait; written by itself */
};

/* Asked to end its wait in kb_io_*. */
enum { KBI_DESCRIPTOR_IO_CANCEL = 1 << 30 };

struct kb_thread {
	struct kbi_task task; /* first */
	/* line 1. The thread itself, its creator, its joiner */
	void *(*fn)(void *);  /* constant from NEW on */
	void *arg;
	void *result;         /* written by the thread, read after DONE by its joiner; before: own TLS, FP control words */
	aptr join;            /* who joins: NULL, a task, or one of the marks in thread.c */
	struct kbi_stack *stack; /* at its first run; with posix, whose id is the block's address, or its own: at once */
	void **keys;          /* thread-specific data, NULL until first used */
	void *posix;          /* the drop-in's own record, NULL otherwise */
	a32 futex;            /* bit 0, FOREIGN and BLOCKED: permit; the kernel thread sleeps on it. KBI_DESCRIPTOR_IO_CANCEL */
	uint8_t stack_class;  /* of its stack, mem/stack.h */
	bool own_tls : 1;
	bool user_stack : 1;
	bool is_main : 1;
	bool named : 1;       /* set by anybody; the others of this byte are constant by then */
	uint8_t unused : 4;
	uint8_t reason;       /* enum kbi_wake_reason of the last claim */
	uint8_t chat : 6;     /* short runs after wakes from another VP, saturating. This byte: who runs it, or has it ready */
	bool lost : 1;        /* it has crashed; set by itself, for ever */
	bool reads : 1;       /* what sync/rwlock has noted by its index is its, not that of one before */
	/* line 2. Owner VP, or who holds its domain */
	/* In the heap of the VP that `lies` names, also when nobody waits for it any more: core/timer.c. Its keeper's */
	struct kbi_heap_node deadline KBI_ALIGNED(KBI_CACHE_LINE);
	union {
		struct kbi_rest *rest; /* KBI_TASK_TIMED: until when it waits */
		uint64_t turn_time;    /* KBI_TASK_PREEMPTED: core/turn.c */
		uint64_t pid;          /* of system scope: the process whose kernel thread it is */
	};
	struct kbi_cell *got;          /* KBI_TASK_MAIL: the cell a message came for, */
	uint64_t got_value;            /* and the message */
	a16 lies;                      /* 1 + the VP; 0: in no heap. Set by the thread, cleared by the keeper, for ever valid */
	uint16_t bound;                /* KBI_TASK_BOUND: constant, to this VP */
	uint16_t body;                 /* BLOCKED: on this one, kbi_spare_bodies; else 0. The thread itself */
	/* The drop-in's: how many are about to signal its kernel thread for a cancellation. Never set, so that the last of
	 * them may be late, when another thread has the descriptor */
	a16 calling;
	/* line 3 */
	char name[16];        /* empty unless named */
	struct kbi_signals signals;
	struct kbi_watch *watch; /* KBI_TASK_WATCHES: the memory word it waits for */
	struct kbi_san san;
	/* The drop-in's, with `posix`: by what the program knows it, gettid's. In memory that stays: who looks for a number
	 * meets threads that end meanwhile, and their stacks go. Without: 0, or that of one that had the descriptor before */
	a32 number;
} KBI_ALIGNED(KBI_CACHE_LINE);

_Static_assert(sizeof(struct kb_thread) == 256, "a parked thread costs a page of stack and this");

static inline struct kb_thread *kbi_thread_of(struct kbi_task *t)
{
	return (struct kb_thread *)t;
}

/* A handler of the program's waits to run on it: its turn is next, as kernels have it. */
static inline bool kbi_descriptor_is_signalled(const struct kb_thread *t)
{
	return kbi_unlikely(a_load_rlx(&t->signals.pending) & ~a_load_rlx(&t->signals.mask));
}

/* Offset of kbi_self_tls from the thread pointer: the same in all TLS blocks; set at boot. */
extern KBI_HIDDEN ptrdiff_t kbi_self_offset;
/* How often the thread was switched to without a descriptor (os/segment), and where that is in each block. */
extern KBI_HIDDEN __thread uint32_t kbi_descriptor_loads __attribute__((tls_model("initial-exec")));
extern KBI_HIDDEN ptrdiff_t kbi_descriptor_loads_at;

/* Memory for the table and the boards' marks; idempotent, any thread, before anything else. ENOMEM: there is no address
 * space; a few kernel threads may have descriptors still. */
int kbi_descriptor_setup(void);
/* In the child of fork: if somebody was at what lies free, who is not there any more, the child leaves that alone. */
void kbi_descriptor_after_fork(void);
/* By index, NULL where never used; the indices in use are below kbi_descriptor_limit(). */
struct kb_thread *kbi_descriptor_at(uint32_t index);
uint32_t kbi_descriptor_limit(void);
/* How many have been some thread's. Those that were are taken before those that never were, by each VP of its own: on one
 * VP that many were in use at once, on several not more. Approximate while threads are made. */
uint32_t kbi_descriptor_ever_used(void);

/* What a VP keeps for itself, last in first out: up to two bundles. Owner only. */
struct kbi_descriptor_cache {
	struct kb_thread *free;
	uint32_t n;              /* of them */
	struct kb_thread *spare; /* KBI_DESCRIPTOR_BUNDLE more, or NULL */
};
enum { KBI_DESCRIPTOR_BUNDLE = 128 /* so many go to the table and come from there at once */ };

struct kb_thread *kbi_descriptor_alloc_slow(struct kbi_descriptor_cache *c);
void kbi_descriptor_free_slow(struct kbi_descriptor_cache *c, struct kb_thread *t);

/* A descriptor in state NEW, or NULL: all are in use. c: of the VP the caller runs on, NULL: none. */
static inline struct kb_thread *kbi_descriptor_alloc(struct kbi_descriptor_cache *c)
{
	struct kb_thread *t, *next;

	if (kbi_unlikely(!c || !c->free)) {
		t = kbi_descriptor_alloc_slow(c);
		if (!t)
			return NULL;
	} else {
		t = c->free;
		c->free = next = (struct kb_thread *)t->task.next;
		c->n--;
		__builtin_prefetch(next, 1);
		__builtin_prefetch((char *)next + KBI_CACHE_LINE, 1);
	}
	t->task.ctx.sp = t; /* who prefetches a context's stack finds something near */
	t->task.tp = 0;
	t->task.vp = NULL;
	a_store_rlx(&t->task.np, 1);
	t->task.awaits = NULL;
	a_store_rlx(&t->task.flags, KBI_TASK_NOT_BARE | KBI_TASK_NOT_STARTED);
	a_store_rlx(&t->task.permit, 0);
	a_store_rlx(&t->join, NULL);
	t->stack = NULL;
	t->keys = NULL;
	t->posix = NULL;
	a_store_rlx(&t->futex, 0);
	t->stack_class = 0;
	t->own_tls = t->user_stack = t->is_main = t->named = t->lost = t->reads = false;
	t->unused = 0; /* so that nothing is read to write these */
	t->reason = 0;
	t->chat = 0;
	a_store_rlx(&t->task.state, KBI_STATE(KBI_TASK_NEW, 0));
	return t;
}

static inline void kbi_descriptor_free(struct kbi_descriptor_cache *c, struct kb_thread *t)
{
	a_store_rlx(&t->task.state, KBI_STATE(KBI_TASK_FREE, 0));
	if (kbi_unlikely(t->named))
		t->name[0] = 0;
	if (kbi_unlikely(!c || c->n >= KBI_DESCRIPTOR_BUNDLE)) {
		kbi_descriptor_free_slow(c, t);
		return;
	}
	t->task.next = (struct kbi_task *)c->free;
	c->free = t;
	c->n++;
}

/* The table: reserved once. */
struct kbi_descriptor_table {
	struct kb_thread *at; /* constant after setup */
	a32 used;             /* descriptors ever used; grows under the table's lock */
	a64 *charged;         /* constant after setup: what each has used of the processor, core/meter, ns. NULL: no room */
};
extern KBI_HIDDEN struct kbi_descriptor_table kbi_descriptor_table;

/* Is it a descriptor in use? */
static inline bool kbi_descriptor_valid(const struct kb_thread *t)
{
	uintptr_t off = (uintptr_t)t - (uintptr_t)kbi_descriptor_table.at;

	/* acquire: partner is the release in draw; t below the table: the difference is huge */
	return off % sizeof *t == 0 && off / sizeof *t < a_load_acq(&kbi_descriptor_table.used) &&
	       kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_FREE;
}

#endif
