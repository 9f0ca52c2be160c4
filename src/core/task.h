/* core/task.h - what a scheduler knows of a thread: a saved context, a link, and its state word.
 * The state word is the truth (who owns the task); queues are hints that agree with it.
 *
 * Laws of the room
 *  1. The VP named in a task's state word owns the task: it alone moves it to another state, links it,
 *     reads its saved context, runs it. Ownership passes by a release store of the state word (or of
 *     the queue slot that carries the task) and an acquire load of the same.
 *  2. Only the owner claims a waiter. Wake-ups from elsewhere are messages to the owner (core/board).
 *  3. Who takes a task out of a place several VPs can reach stores its new state, then a full fence
 *     (one for a whole packet), before the task runs. Partner: kbi_wait_wake's slow path.
 *
 * States and arrows (who takes them)
 *   FREE    -> NEW            creator            descriptor in nobody's queue
 *   NEW     -> READY(vp)      creator's VP
 *   READY(vp) -> RUNNING(vp)  vp: it is in vp's Protect Queue (or a scheduler's own queue)
 *   READY(vp) -> WAIVED(vp')  vp: surplus, in a packet towards vp' (lb2: in vp's Waiver Queue, vp' = vp)
 *   WAIVED(v) -> READY(v'),   v' took the packet
 *   RUNNING(vp) -> READY(vp)  vp: yield
 *   RUNNING(vp) -> WAITING(vp) the task itself, about to switch away
 *   WAITING(vp) -> RUNNING(vp) the task itself, before it switches away: a permit is there
 *   WAITING(vp) -> READY(vp)  vp: permit or deadline; or who holds vp's domain while it sleeps
 *   RUNNING(vp) -> DONE       the task itself; its stack is free once the next context runs
 *   RUNNING(vp) -> BLOCKED(vp) the task itself: in a call that blocks the kernel thread, which is its own meanwhile
 *   BLOCKED(vp) -> RUNNING(vp) the task itself, if nobody has taken vp
 *   BLOCKED(vp) -> WAIVED(v)  its kernel thread, once the context is saved
 *   FOREIGN: a kernel thread that Kochab did not create; it has no context, waits in a futex. So does a BLOCKED one. */
#ifndef KBI_TASK_H
#define KBI_TASK_H

#include "arch/arch.h"
#include "base/atom.h"
#include "os/segment.h"

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
	kbi_tpword tp;         /* own thread pointer; 0: light, runs on the VP's */
	struct kbi_task *next; /* in a queue or packet */
	struct kbi_task *prev; /* in a Protect Queue only */
	a64 state;             /* kind << 32 | vp; written by the owner, read by all */
	struct kbi_vp *vp;     /* RUNNING: the VP it runs on, set at each resume */
	struct kbi_cell *awaits; /* WAITING: the cell it waits for; NULL again: its message is there, core/cell.h */
	uint32_t index;        /* constant: place in the descriptor table and on the boards */
	a16 np;                /* no-preempt count; written by the task itself, read by a signal on it */
	union {
		struct {
			a8 flags;  /* KBI_TASK_ bits */
			a8 permit; /* of a wake-up; set by any VP, taken by the task, core/wait.h */
		};
		a16 hindrance; /* both, for one look at all that may keep it from going to sleep at once */
	};
};

_Static_assert(sizeof(struct kbi_task) <= KBI_CACHE_LINE, "what each switch and wake-up touches is one line");

/* What is set keeps the task from a short way. */
enum kbi_task_flag {
	KBI_TASK_NOT_BARE = 1, /* it has a tp, or has not run yet: more than a context is to be loaded */
	KBI_TASK_NOT_STARTED = 2, /* it has no stack and no context yet */
	KBI_TASK_TIMED = 4,    /* it waits, or is about to, with a deadline */
	KBI_TASK_MAIL = 8,     /* a cell's message is in the descriptor (got) */
	KBI_TASK_BOUND = 16,   /* to a VP */
	KBI_TASK_PREEMPTED = 32, /* was switched away by the tick, and has not run since */
	KBI_TASK_WATCHES = 64, /* it waits, or is about to, for a watched word */
	KBI_TASK_COMPUTES = 128, /* the tick has ended a turn of its since its last call that core/slice knows */
	KBI_TASK_ARMED = KBI_TASK_TIMED | KBI_TASK_WATCHES,
};

/* Written by the owner with plain stores; others look at NOT_STARTED only. */
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

/* HANDLER: a FOREIGN one's futex was ended by a signal handler. */
enum kbi_wake_reason { KBI_WAKE_PERMIT, KBI_WAKE_DEADLINE, KBI_WAKE_WATCH, KBI_WAKE_HANDLER };

/* One of these flags is set at one of two. */
static inline bool kbi_task_is_either(const struct kbi_task *t, const struct kbi_task *u, unsigned flags)
{
	return (a_load_rlx(&t->flags) | a_load_rlx(&u->flags)) & flags;
}

/* One of these flags is set, or it has a permit. */
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
static inline enum kbi_task_kind kbi_state_kind(uint64_t s) { return (enum kbi_task_kind)(s >> 32); }
static inline unsigned kbi_state_vp(uint64_t s) { return (uint32_t)s; }

/* The task the calling context is, NULL on a foreign kernel thread that has not called yet. It lives in
 * the TLS block that is loaded: a thread's own (constant) or its VP's (rewritten at each switch). */
extern __thread struct kbi_task *kbi_self_tls __attribute__((tls_model("initial-exec")));

static inline struct kbi_task *kbi_self_raw(void)
{
#if defined(__x86_64__)
	/* one instruction reads it, so no stale TLS address can be in a register */
	struct kbi_task *t;
	__asm__ volatile("movq kbi_self_tls@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=&r"(t));
	return t;
#else
	struct kbi_task *kbi_self_reload(void);
	return kbi_self_reload();
#endif
}

/* ---- Protect Queue: the VP's private ready queue, first in, first out ---------------------------- */
struct kbi_pq {
	struct kbi_task *head, *tail;
	uint32_t n;
	uint32_t bound; /* of them bound to this VP: never given away */
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

/* kbi_pq_append of self, then kbi_pq_pop, where neither self nor the head is bound and there is a head. */
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
