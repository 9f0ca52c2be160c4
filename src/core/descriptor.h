/* core/descriptor.h - the descriptor of a thread: a task with an entry, a stack, a result, keys
 * and a name. A descriptor stays a descriptor for ever, so that a stale pointer in a wake-up
 * always finds one; each has a number.
 * Callers: core, sync, io, posix. Inside np brackets; a lock only in the slow paths; never
 * switches. */
#ifndef KBI_DESCRIPTOR_H
#define KBI_DESCRIPTOR_H

#include "base/heap.h"
#include "base/san.h"
#include "mem/stack.h"
#include "sched/task.h"

struct kbi_cell;
struct kbi_rest;
struct kbi_watch;

/* Signal sets of the drop-in: bit n - 1 for signal n. They are here because a descriptor
 * outlives its thread. */
struct kbi_signals {
	a64 mask;    /* signals that the thread blocks; written by the thread */
	a64 pending; /* signals sent to the thread that wait; written by any thread */
	a64 wanted;  /* signals that the thread waits for in sigwait; written by the thread */
};

/* Bit of `futex`: the thread was asked to end its wait in kb_io_*. */
enum { KBI_DESCRIPTOR_IO_CANCEL = 1 << 30 };

struct kb_thread {
	struct kbi_task task; /* first */
	/* line 1. Written by the thread, its creator and its joiner */
	void *(*fn)(void *);  /* constant from NEW on */
	void *arg;
	/* written by the thread, read after DONE by its joiner; until its first run, if own_tls: FP
	 * control words */
	void *result;
	aptr join;            /* the joiner: NULL, a task, or one of the marks in thread.c */
	/* set at the first run; at once if the user gave it or with `posix`, whose id is the block's
	 * address */
	struct kbi_stack *stack;
	void **keys;          /* thread-specific data, NULL until first used */
	void *posix;          /* the drop-in's own record, NULL otherwise */
	/* bit 0: the permit of a FOREIGN or BLOCKED task, whose kernel thread sleeps on this word;
	 * also KBI_DESCRIPTOR_IO_CANCEL */
	a32 futex;
	uint8_t stack_class;  /* class of its stack, mem/stack.h */
	bool own_tls : 1;
	bool user_stack : 1;
	bool is_main : 1;
	bool named : 1;       /* set by any thread; the rest of this byte is constant by then */
	uint8_t unused : 4;
	uint8_t reason;       /* enum kbi_wake_reason of the last claim */
	/* short runs in a row after wake-ups from another VP, saturating. This byte is written by
	 * the VP that runs the thread or has it ready */
	uint8_t pingpong : 6;
	bool lost : 1;        /* it has crashed; set by the thread, for ever */
	/* sync/rwlock's record under this index belongs to this thread, not to the previous thread
	 * of the descriptor */
	bool reads : 1;
	/* line 2. Written by the owner VP or the holder of its domain */
	/* Node in the heap of the VP that `lies` names, also after the wait has ended:
	 * core/deadline.c. The keeper of that heap writes it */
	struct kbi_heap_node deadline KBI_ALIGNED(KBI_CACHE_LINE);
	union {
		struct kbi_rest *rest; /* KBI_TASK_TIMED: the end of its wait */
		uint64_t turn_time;    /* KBI_TASK_PREEMPTED: core/turn.c */
		uint64_t pid;          /* system scope: the process whose kernel thread it is */
	};
	struct kbi_cell *got;          /* KBI_TASK_MAIL: the cell that a message came for */
	uint64_t got_value;            /* and that message */
	/* 1 + the VP of the heap; 0: in no heap. Set by the thread, cleared by the keeper; valid for
	 * ever */
	a16 lies;
	uint16_t bound;                /* KBI_TASK_BOUND: the VP it is bound to; constant */
	/* BLOCKED: index of its worker in kbi_workers; else 0. Written by the thread */
	uint16_t worker;
	/* Drop-in: how many threads are about to signal this thread's kernel thread for a
	 * cancellation. Only counted up and down, never set, because the last of them may be late,
	 * when a new thread has the descriptor */
	a16 calling;
	/* line 3 */
	char name[16];        /* empty unless named */
	struct kbi_signals signals;
	struct kbi_watch *watch; /* KBI_TASK_WATCHES: the memory word it waits for */
	struct kbi_san san;
	/* Drop-in, with `posix`: the thread's gettid number, by which the program knows it. It lies
	 * in memory that stays, because a search for a number meets threads that end meanwhile and
	 * whose stacks go. Without `posix`: 0, or the number of an earlier thread of the descriptor */
	a32 number;
} KBI_ALIGNED(KBI_CACHE_LINE);

_Static_assert(sizeof(struct kb_thread) == 256, "a parked thread costs a page of stack and this");

static inline struct kb_thread *kbi_thread_of(struct kbi_task *t)
{
	return (struct kb_thread *)t;
}

/* Returns true if a handler of the program waits to run on the thread; its turn is then next, as
 * in kernels. */
static inline bool kbi_descriptor_is_signalled(const struct kb_thread *t)
{
	return kbi_unlikely(a_load_rlx(&t->signals.pending) & ~a_load_rlx(&t->signals.mask));
}

/* Offset of kbi_self_tls from the thread pointer, equal in all TLS blocks; set at boot. */
extern KBI_HIDDEN ptrdiff_t kbi_self_offset;
/* How often a switch to the thread loaded its block without a segment descriptor (libc/segment),
 * and the offset of this counter in each block. */
extern KBI_HIDDEN __thread uint32_t kbi_descriptor_loads __attribute__((tls_model("initial-exec")));
extern KBI_HIDDEN ptrdiff_t kbi_descriptor_loads_at;

/* Reserves memory for the table and the boards' marks. Idempotent; any thread; before any other
 * function here. Returns 0 or ENOMEM: there is no address space; a few kernel threads can still
 * have descriptors. */
int kbi_descriptor_setup(void);
/* In the child of fork: abandons the free descriptors if a thread of the parent held their lock. */
void kbi_descriptor_after_fork(void);
/* Returns the descriptor of this index, NULL if it was never used. Indices in use are below
 * kbi_descriptor_limit(). */
struct kb_thread *kbi_descriptor_at(uint32_t index);
uint32_t kbi_descriptor_limit(void);
/* Returns how many descriptors have ever been a thread's. Each VP takes returned descriptors
 * before new ones. With one VP this is the greatest number of descriptors in use at once; with
 * several VPs it is an upper bound of that number. Approximate while threads are made. */
uint32_t kbi_descriptor_ever_used(void);

/* The free descriptors of a VP, last in first out: up to two bundles. Owner only. */
struct kbi_descriptor_cache {
	struct kb_thread *free;
	uint32_t n;              /* descriptors in `free` */
	struct kb_thread *spare; /* KBI_DESCRIPTOR_BUNDLE more, or NULL */
};
enum { KBI_DESCRIPTOR_BUNDLE = 128 /* so many go to the table or come from it at once */ };

struct kb_thread *kbi_descriptor_alloc_slow(struct kbi_descriptor_cache *c);
void kbi_descriptor_free_slow(struct kbi_descriptor_cache *c, struct kb_thread *t);

/* A descriptor in state NEW, or NULL: all are in use. c: of the VP the caller runs on, NULL:
 * none. */
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
	t->task.ctx.sp = t; /* a prefetch of the context's stack finds mapped memory nearby */
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
	t->unused = 0; /* all bits of the byte are written, so that none must be read */
	t->reason = 0;
	t->pingpong = 0;
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
	/* constant after setup: processor time that each thread has used, core/meter, ns. NULL: no
	 * room */
	a64 *charged;
};
extern KBI_HIDDEN struct kbi_descriptor_table kbi_descriptor_table;

/* Returns true if t is a descriptor in use. */
static inline bool kbi_descriptor_valid(const struct kb_thread *t)
{
	uintptr_t off = (uintptr_t)t - (uintptr_t)kbi_descriptor_table.at;

	/* acquire: pairs with the release in draw_descriptor; if t is below the table, the difference
	 * is huge. The state's acquire pairs with the release of its owner */
	return off % sizeof *t == 0 && off / sizeof *t < a_load_acq(&kbi_descriptor_table.used) &&
	       kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_FREE;
}

#endif
