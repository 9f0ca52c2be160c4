/* sched/task.h - the part of a thread that a scheduler knows: a saved context, links and a state
 * word. The state word tells which VP owns the task. Queues only agree with it.
 * Callers: all of sched and core, and sync. Inline functions; no locks; nothing here switches.
 *
 * Laws of the room
 *   1. The VP named in a task's state word owns the task. Only this VP changes the state, links
 *      the task, reads its saved context and runs it. Ownership passes by a release store of the
 *      state word (or of the queue slot that carries the task) and an acquire load of that word.
 *   2. Only the owner claims a waiter. A wake-up from elsewhere is a message to the owner
 *      (sched/board).
 *   3. A VP that takes a task out of a place that several VPs can reach stores the task's new
 *      state, then executes a full fence (one for a whole packet), before the task runs. Pairs
 *      with kbi_wait_wake's slow path (leave_permit in core/domain.c).
 *
 * States and arrows, and which VP or thread takes each
 *   FREE -> NEW: creator; the descriptor is in no queue
 *   NEW -> READY(vp): creator's VP
 *   READY(vp) -> RUNNING(vp): vp: the task is in vp's Protect Queue (or a scheduler's own queue)
 *   READY(vp) -> WAIVED(vp'): vp: surplus, in a packet towards vp' (lb2: in vp's Waiver Queue,
 *   vp' = vp)
 *   WAIVED(v) -> READY(v'): v', which took the packet
 *   RUNNING(vp) -> READY(vp): vp: yield
 *   RUNNING(vp) -> WAITING(vp): the task itself, before it switches away
 *   WAITING(vp) -> RUNNING(vp): the task itself, before it switches away: it found a permit
 *   WAITING(vp) -> READY(vp): vp: permit or deadline; or the VP that holds vp's domain while vp
 *   sleeps
 *   RUNNING(vp) -> DONE: the task itself; its stack is free once the next context runs
 *   RUNNING(vp) -> BLOCKED(vp): the task itself: it blocks its kernel thread in a call
 *   BLOCKED(vp) -> RUNNING(vp): the task itself, if no worker has taken vp
 *   BLOCKED(vp) -> WAIVED(v): its kernel thread, once the context is saved
 * FOREIGN: a kernel thread that Kochab did not create. It has no context and waits in a futex,
 * as a BLOCKED task does. */
#ifndef KBI_TASK_H
#define KBI_TASK_H

#include "arch/arch.h"
#include "base/atom.h"
#include "libc/segment.h"

enum kbi_task_kind {
	KBI_TASK_FREE,
	KBI_TASK_NEW,
	KBI_TASK_READY,
	KBI_TASK_WAIVED,
	KBI_TASK_RUNNING,
	KBI_TASK_WAITING,
	KBI_TASK_DONE,
	KBI_TASK_FOREIGN,
	KBI_TASK_BLOCKED,
};

struct kbi_vp;

struct kbi_task {
	/* owner VP only */
	struct kbi_ctx ctx;    /* valid unless RUNNING */
	kbi_tpword tp;         /* own thread pointer; 0: a light thread, which runs on its VP's */
	struct kbi_task *next; /* in a queue or packet */
	struct kbi_task *prev; /* in a Protect Queue only */
	a64 state;             /* kind << 32 | vp; written by the owner, read by any VP */
	struct kbi_vp *vp;     /* RUNNING: the VP it runs on, set at each resume */
	/* WAITING: the cell it waits for; NULL: none, or its message has come (core/cell.h) */
	struct kbi_cell *awaits;
	uint32_t index;        /* constant: index in the descriptor table and on the boards */
	a16 np; /* no-preempt count; written by the task itself, read by a signal handler on it */
	union {
		struct {
			a8 flags;  /* KBI_TASK_ bits */
			a8 permit; /* 1: a wake-up is kept; set by any VP, taken by the task, core/wait.h */
		};
		/* flags and permit, so that one load shows everything that may keep the task from
		 * sleeping */
		a16 hindrance;
	};
};

_Static_assert(sizeof(struct kbi_task) <= KBI_CACHE_LINE,
	"what each switch and wake-up touches is one line");

/* Flags that exclude a task from a short path. */
enum kbi_task_flag {
	/* it has a tp or has not run yet: a switch to it loads more than a context */
	KBI_TASK_NOT_BARE = 1,
	KBI_TASK_NOT_STARTED = 2, /* it has no stack and no context yet */
	KBI_TASK_TIMED = 4,    /* it waits, or is about to wait, with a deadline */
	KBI_TASK_MAIL = 8,     /* a cell's message is in the descriptor (got) */
	KBI_TASK_BOUND = 16,   /* it is bound to a VP */
	KBI_TASK_PREEMPTED = 32, /* the tick has switched it away, and it has not run since */
	KBI_TASK_WATCHES = 64, /* it waits, or is about to wait, for a watched word */
	/* the tick has ended a turn of the task since its last call that core/slice knows */
	KBI_TASK_COMPUTES = 128,
	KBI_TASK_ARMED = KBI_TASK_TIMED | KBI_TASK_WATCHES,
};

/* Returns true if the task has any of `flags`. The owner writes the flags with plain stores;
 * other VPs read NOT_STARTED only. */
static inline bool kbi_task_is(const struct kbi_task *t, unsigned flags)
{
	return a_any8_rlx(&t->flags, (uint8_t)flags);
}

static inline void kbi_task_set(struct kbi_task *t, unsigned flags)
{
	a_store_rlx(&t->flags, (uint8_t)(a_load_rlx(&t->flags) | flags));
}

static inline void kbi_task_clear(struct kbi_task *t, unsigned flags)
{
	a_store_rlx(&t->flags, (uint8_t)(a_load_rlx(&t->flags) & ~flags));
}

/* Why a wait ended. HANDLER: a signal handler ended the futex wait of a FOREIGN task. */
enum kbi_wake_reason { KBI_WAKE_PERMIT, KBI_WAKE_DEADLINE, KBI_WAKE_WATCH, KBI_WAKE_HANDLER };

/* Returns true if t or u has any of `flags`. */
static inline bool kbi_task_is_either(const struct kbi_task *t, const struct kbi_task *u,
	unsigned flags)
{
	return (a_load_rlx(&t->flags) | a_load_rlx(&u->flags)) & flags;
}

/* Returns true if the task has any of `flags` or a permit. */
static inline bool kbi_task_is_hindered(const struct kbi_task *t, unsigned flags)
{
	union {
		uint8_t byte[2];
		uint16_t both;
	} looked_for = { { (uint8_t)flags, 0xff } };

	return a_any16_rlx(&t->hindrance, looked_for.both);
}

static inline void kbi_task_set_started(struct kbi_task *t)
{
	kbi_task_clear(t, t->tp ? KBI_TASK_NOT_STARTED : KBI_TASK_NOT_STARTED | KBI_TASK_NOT_BARE);
}

#define KBI_STATE(kind, vp) ((uint64_t)(kind) << 32 | (uint32_t)(vp))
static inline enum kbi_task_kind kbi_state_kind(uint64_t s)
{
	return (enum kbi_task_kind)(s >> 32);
}

static inline unsigned kbi_state_vp(uint64_t s) { return (uint32_t)s; }

/* The task of the calling context; NULL on a foreign kernel thread before its first call. It
 * lies in the TLS block that is loaded: a thread's own (then constant) or its VP's (then each
 * switch writes it). */
extern __thread struct kbi_task *kbi_self_tls __attribute__((tls_model("initial-exec")));

static inline struct kbi_task *kbi_self_raw(void)
{
#if defined(__x86_64__)
	/* a single instruction reads it, so no register can hold a stale TLS address */
	struct kbi_task *t;
	__asm__ volatile("movq kbi_self_tls@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=&r"(t));
	return t;
#else
	struct kbi_task *kbi_self_reload(void);
	return kbi_self_reload();
#endif
}

/* ---- Protect Queue: the VP's private ready queue, first in, first out ------------------------ */
struct kbi_pq {
	struct kbi_task *head, *tail;
	uint32_t n;
	uint32_t bound; /* tasks of the queue that are bound to this VP: never given away */
};

static inline void kbi_pq_append(struct kbi_pq *q, struct kbi_task *t)
{
	t->next = NULL;
	t->prev = q->tail;
	if (q->tail)
		q->tail->next = t;
	else
		q->head = t;
	q->tail = t;
	q->n++;
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_BOUND)))
		q->bound++;
}

static inline void kbi_pq_prepend(struct kbi_pq *q, struct kbi_task *t)
{
	t->prev = NULL;
	t->next = q->head;
	if (q->head)
		q->head->prev = t;
	else
		q->tail = t;
	q->head = t;
	q->n++;
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_BOUND)))
		q->bound++;
}

static inline void kbi_pq_remove(struct kbi_pq *q, struct kbi_task *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		q->head = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		q->tail = t->prev;
	q->n--;
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_BOUND)))
		q->bound--;
}

static inline struct kbi_task *kbi_pq_pop(struct kbi_pq *q)
{
	struct kbi_task *t = q->head;

	if (kbi_unlikely(!t))
		return NULL;
	q->head = t->next;
	if (kbi_likely(t->next != NULL)) {
		t->next->prev = NULL;
		__builtin_prefetch(t->next->ctx.sp);
		__builtin_prefetch(t->next->next);
	} else {
		q->tail = NULL;
	}
	q->n--;
	if (kbi_unlikely(kbi_task_is(t, KBI_TASK_BOUND)))
		q->bound--;
	return t;
}

/* Appends self, then pops the head. There is a head, and neither the head nor self is bound. */
static inline struct kbi_task *kbi_pq_turn(struct kbi_pq *q, struct kbi_task *self)
{
	struct kbi_task *t = q->head, *next = t->next, *last = q->tail;

	self->next = NULL;
	q->tail = self;
	if (kbi_unlikely(!next)) {
		self->prev = NULL;
		q->head = self;
		return t;
	}
	q->head = next;
	next->prev = NULL;
	__builtin_prefetch(next->ctx.sp);
	__builtin_prefetch(next->next);
	self->prev = last;
	last->next = self;
	return t;
}

#endif
