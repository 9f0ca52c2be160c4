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
 *   WAITING(vp) -> READY(vp)  vp: permit or deadline; or who holds vp's domain while it sleeps
 *   RUNNING(vp) -> DONE       the task itself; its stack is free once the next context runs
 *   FOREIGN: a kernel thread that Kochab did not create; it has no context, waits in a futex. */
#ifndef KBI_TASK_H
#define KBI_TASK_H

#include "arch/arch.h"
#include "base/atom.h"

enum kbi_task_kind {
	KBI_TASK_FREE,
	KBI_TASK_NEW,
	KBI_TASK_READY,
	KBI_TASK_WAIVED,
	KBI_TASK_RUNNING,
	KBI_TASK_WAITING,
	KBI_TASK_DONE,
	KBI_TASK_FOREIGN,
};

struct kbi_vp;

struct kbi_task {
	/* owner VP only */
	struct kbi_ctx ctx;    /* valid unless RUNNING */
	void *tp;              /* own thread pointer; NULL: light, runs on the VP's */
	struct kbi_task *next; /* in a queue or packet */
	struct kbi_task *prev; /* in a Protect Queue only */
	a64 state;             /* kind << 32 | vp; written by the owner, read by all */
	struct kbi_vp *vp;     /* RUNNING: the VP it runs on, set at each resume */
	uint32_t index;        /* constant: place in the descriptor table and on the boards */
	a32 np;                /* no-preempt count; written by the task itself, read by a signal on it */
	int32_t bound;         /* VP it is bound to, -1 free */
	uint8_t reason;        /* enum kbi_wake_reason of the last claim */
	uint8_t started;       /* KBI_STARTED_ bits; 0: it has no stack and no context yet */
	uint8_t chat;          /* short runs after wakes from another VP, saturating */
	uint8_t armed;         /* KBI_ARMED_ bits */
};

enum {
	KBI_STARTED = 1,
	KBI_STARTED_BARE = 2, /* and has no tp: a switch between two such loads a context and nothing else */
};

enum {
	KBI_ARMED_WAIT = 1, /* has a deadline in the heap or watches a word */
	KBI_ARMED_MAIL = 2, /* a cell's message is in the descriptor */
};

/* HANDLER: a FOREIGN one's futex was ended by a signal handler. */
enum kbi_wake_reason { KBI_WAKE_PERMIT, KBI_WAKE_DEADLINE, KBI_WAKE_WATCH, KBI_WAKE_HANDLER };

static inline void kbi_task_set_started(struct kbi_task *t)
{
	__atomic_store_n(&t->started, KBI_STARTED | (t->tp ? 0 : KBI_STARTED_BARE), __ATOMIC_RELAXED);
}

/* From elsewhere than its owner VP: true some time ago, perhaps. */
static inline bool kbi_task_peek_started(const struct kbi_task *t)
{
	return __atomic_load_n(&t->started, __ATOMIC_RELAXED) != 0;
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
	if (kbi_unlikely(t->bound >= 0))
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
	if (kbi_unlikely(t->bound >= 0))
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
	if (kbi_unlikely(t->bound >= 0))
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
	if (kbi_unlikely(t->bound >= 0))
		q->bound--;
	return t;
}

/* kbi_pq_append of self, then kbi_pq_pop of a queue that is not empty. */
static inline struct kbi_task *kbi_pq_turn(struct kbi_pq *q, struct kbi_task *self)
{
	struct kbi_task *t = q->head, *next = t->next;

	if (kbi_unlikely(!next || (t->bound & self->bound) >= 0)) {
		kbi_pq_append(q, self);
		return kbi_pq_pop(q);
	}
	next->prev = NULL;
	__builtin_prefetch(next->ctx.sp);
	__builtin_prefetch(next->next);
	q->head = next;
	self->next = NULL;
	self->prev = q->tail;
	q->tail->next = self;
	q->tail = self;
	return t;
}

#endif
