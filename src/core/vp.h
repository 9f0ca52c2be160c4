/* core/vp.h - a virtual processor: runs threads one at a time. Here are its state, its ready queue and what passes
 * between VPs; core/run switches, core/domain wakes, core/agent polls when nothing is ready.
 *
 * Domain: what a VP owns besides its ready queue - its waiters, mailboxes, board, deadlines and watches.
 * `keeper` says who may act on it: the VP itself, or, while it sleeps in the kernel, whoever takes it for a
 * moment (a waker that wants a waiter, the polling VP). So a sleeping VP's waiters are resumed by the one
 * that is awake and nobody pays for a kernel wake-up that is not needed. */
#ifndef KBI_VP_H
#define KBI_VP_H

#include "base/heap.h"
#include "core/board.h"
#include "core/body.h"
#include "core/descriptor.h"
#include "core/sched.h"

enum kbi_keeper {
	KBI_KEEPER_SELF,    /* the VP acts on its own domain */
	KBI_KEEPER_OFFERED, /* it sleeps: anybody may take the domain (CAS to TAKEN) */
	KBI_KEEPER_TAKEN,   /* somebody acts on it for some hundred ns */
};

/* The word that a sleeping VP's futex waits on; SOURCE: a kick of the source wakes it. */
enum kbi_doze {
	KBI_DOZE_NO,      /* awake, or woken: a waker has made it so */
	KBI_DOZE_YES,     /* in the futex or on the way to it */
	KBI_DOZE_MONITOR, /* woken only to go on dozing as a monitor */
	KBI_DOZE_SOURCE,  /* as YES, but it sleeps in the source of events (source.h) */
};

struct kbi_watch;

/* The turn of a thread that had been switched away by the tick before, noted when it goes on: core/turn. */
struct kbi_turn {
	/* written by the owner, read by the lookout */
	a64 number; /* kbi_vp_turns then: as long as that is the same it lasts */
	a64 since;  /* ns */
	a64 cpu;    /* the body's processor time then, ns */
	a32 brief;  /* it was found spinning */
	a32 known;  /* ready tasks then */
	/* written by the owner, read by all */
	a64 clock;  /* virtual time of the one that was chosen last, ns */
	/* owner only */
	uint64_t begun;    /* virtual time of the thread then */
	int64_t to_rotate; /* ns until one goes on to the next VP */
	struct kbi_context_place place; /* where it had been interrupted */
};

/* core/apart: where the VP runs. */
struct kbi_apart {
	/* owner only */
	uint32_t looks; /* calls */
	uint64_t looked, n_moves;
	/* the lookout's, ns: of the attempts to move it */
	uint64_t patience, next;
	/* from the VP to the lookout or back, or from the VP to all */
	a32 cpu;
	a64 seen;      /* ns: that it ran there */
	a32 wanted;    /* a processor + 1: it is to go there; 0: none */
	a32 moves_now; /* 1: its affinity is a single processor, for a moment */
};

/* A turn, as calls that end it know it: core/slice. Owner only. */
struct kbi_slice {
	uint64_t turn;   /* kbi_vp_turns then: as long as that is the same it lasts */
	uint64_t since;  /* ns */
	uint64_t looked; /* when such a call last looked at everything, ns */
	uint32_t quiet;  /* such calls with nobody ready */
	a32 given;       /* calls that have given something out, approximate */
	/* the first in the queue, passed over: at each such call since, at the last of them, ns */
	const struct kbi_task *passed;
	uint64_t passed_since, passed_last;
};

struct kbi_vp {
	/* owner only, hot */
	struct kb_thread *cur;     /* NULL: the agent runs */
	uint64_t waiting_here, ready_here, running_here; /* KBI_STATE(..., id), constant */
	struct kbi_task *first;    /* ready, ahead of the Protect Queue; NULL unless that was empty at its push */
	a32 countdown;             /* looks until the next service; a monitor peeps */
	a64 services;              /* how many; with countdown: unchanged means one thread hogs the VP */
	uint32_t id;
	uint8_t plain;             /* scheduler: ready tasks are in s->pq only */
	uint8_t private_ready;     /* and nobody takes them there */
	uint64_t solo;             /* constant; core/solo: its bit */
	a32 attempt;               /* io/hold: odd: its thread is inside an attempt; read by any VP */
	a32 attempt_watched;       /* somebody waits for the next change; set by any */
	kbi_tpword cur_tp;         /* thread pointer loaded now */
	kbi_tpword tp;             /* the VP's own TLS: agent and light threads */
	void *heap;                /* what the allocator calls its kernel thread (mem/heap_door) */
	struct kbi_task **self_slot; /* kbi_self_tls in that block */
	struct kbi_ctx agent_ctx;
	uint64_t fp, fp_now;       /* FP control words: of the agent and light threads (constant), and loaded now */
	struct kbi_sched_vp *s;    /* constant; the scheduler's part */
	a32 *idle_count;           /* VPs that are not busy; in a burst one of its own that is never 0 */
	const a32 *told;           /* kbi_vp_content: idle_count where plain, else a word that is never 0 */
	const struct kbi_sched *sched;
	uint32_t poll_every;
	struct kbi_descriptor_cache threads;
	struct kbi_stack_slot *stacks; /* constant */
	uint32_t share_skip;       /* pushes to let pass before waking a sleeping VP again */
	a32 in_burst;              /* constant, 1 */
	uint32_t burst_last, burst_next; /* ready tasks at the last push; and at which some are given away */
	uint32_t fine_skip;        /* pushes to let pass before it is asked whether the idle get some */
	uint64_t fed_at, fed_before; /* when others' tasks came to this VP while it was idle, ns; s->taken before that */
	uint64_t spread_at;        /* ns: when it last woke many at a time (sync/waitq) while another VP was idle */
	uint64_t asked_ahead;      /* core/ask: s->taken when it began with the last of them */
	struct kb_thread *idle_ran; /* resumed by mail from the idle loop, to judge its run */
	uint64_t idle_ran_at;      /* ticks */
	uint64_t trimmed_at;       /* ns: when it last gave stacks' memory back */
	uint64_t handovers;        /* direct hand-overs in a row, bounded */
	a32 tid;                   /* of the body; it sets it, any VP sends it the tick */
	struct kbi_san agent_san;
	uint32_t lacks;            /* times that a thread had no stack to begin on */
	uint8_t poller;            /* holds a place among the pollers */
	uint8_t crowded;           /* when it was last others' turn one stood in front of the queue */
	uint8_t parked;            /* core/solo: has said that it runs no thread */
	struct kbi_body *body;     /* the kernel thread that it is */
	uint32_t n_held;           /* light threads that were preempted here: it keeps its body */

	/* the domain: under `keeper` */
	struct kbi_board board KBI_ALIGNED(KBI_CACHE_LINE);
	struct kbi_heap deadlines; /* also some that nobody waits for any more: core/timer.c */
	struct kbi_watch *watches;
	uint32_t n_timed;          /* tasks that wait, or are about to, with a deadline */
	a32 n_watches;             /* others peep */
	a32 n_rung;                /* of them: those whose writers wake this VP */
	uint32_t n_boarded;        /* of them: those that are told of on boards */
	/* published by the owner, read by others */
	/* kbi_vp_first_deadline, or sooner; refreshed before it sleeps and at each service */
	a64 next_deadline KBI_ALIGNED(KBI_CACHE_LINE);

	/* written by any VP */
	a32 doze KBI_ALIGNED(KBI_CACHE_LINE); /* enum kbi_doze */
	a32 keeper;                /* enum kbi_keeper */
	aptr inbox;                /* tasks pushed from outside: stack of WAIVED tasks */
	a32 wanted;                /* 1: an idle VP asks for work: the next look is one at everything; board.marked says so */
	a32 asked;                 /* by the lookout, core/quantum.c */
	a64 asked_used;            /* and what the turn has taken by then, ns */
	a32 heard;                 /* ticks that have come; approximate */
	a64 lent;                  /* its body is in a blocking call and it may be taken: core/handoff.c. 0: it is not */

	a32 place;                 /* core/place: the processor + 1 that it is bound to; 0: none */

	/* cold, owner only: statistics; and when the idle got some of fine tasks, ns */
	uint64_t n_sleeps KBI_ALIGNED(KBI_CACHE_LINE), n_ticks, n_mail;
	uint64_t n_ended, n_brief; /* turns ended by force; of them, of who spun */
	uint64_t sampled_at;
	uint64_t looked_at;        /* and when it last looked, between two turns, whether they should, ns */
	a64 idle_ns;               /* written by the owner, read by any VP: core/agent.c */
	/* at the last look of a monitor, and when, ns; written by any VP, cold */
	a64 seen_progress, seen_turns, seen_at;
	struct kbi_turn turn;
	struct kbi_slice slice;
	struct kbi_apart apart;
} KBI_ALIGNED(KBI_CACHE_LINE);

/* How many VPs do what; read by all, written on the way to and from idleness. */
struct kbi_crowd {
	a32 polling KBI_ALIGNED(KBI_CACHE_LINE); /* VPs that poll, having been idle for a moment */
	a32 pollers;  /* places taken under the pollers option */
	a32 monitors; /* sleeping VPs that look up now and then for stuck queues */
	a32 backoff;  /* pushes to let pass before a sleeping VP is woken just in case */
	a32 fine;     /* pushes, and their time, to let pass before an idle VP gets something; 0: what is moved is worth it */
	a32 clocked;  /* 1: somebody wants to know how long VPs are idle */
	a32 crammed;  /* 1: there are fewer processors than VPs; constant */
};
extern KBI_HIDDEN struct kbi_crowd kbi_crowd;

extern KBI_HIDDEN struct kbi_vp **kbi_vps;  /* constant after boot */
extern KBI_HIDDEN unsigned kbi_vp_n;        /* 0: not booted */

/* What it is of the scheduler's, before it runs. */
void kbi_vp_init(struct kbi_vp *vp, unsigned id, struct kbi_sched_vp *s, const struct kbi_sched *sched);
/* From anywhere: hands a task that nobody else owns to a VP (a bound task, a foreign creator). */
void kbi_vp_send(struct kbi_vp *to, struct kbi_task *t);
/* Takes what was sent. How many. */
unsigned kbi_vp_receive(struct kbi_vp *vp);
/* Wakes it if it sleeps in the kernel. The caller has published its work and fenced. */
void kbi_vp_rouse(struct kbi_vp *vp);
/* Its body, after the caller has changed its word, which was `doze`. */
void kbi_vp_wake_body(struct kbi_vp *vp, uint32_t doze);

/* Has an idle VP asked for work? Then the caller exchanges tasks now. */
static inline bool kbi_vp_is_asked(struct kbi_vp *vp)
{
	if (kbi_likely(!a_load_rlx(&vp->wanted)))
		return false;
	a_store_rlx(&vp->wanted, 0);
	return true;
}

/* Lets the scheduler exchange tasks and wakes whom it names; how many came in. */
unsigned kbi_vp_exchange(struct kbi_vp *vp, enum kbi_sched_why why);
/* Peeps from elsewhere, approximate: ready tasks, and a number that grows with each look for the next task but those of
 * the tick while there is a quantum. */
unsigned kbi_vp_backlog(const struct kbi_vp *vp);
/* Tasks were given to it that it has not taken yet. */
bool kbi_vp_arrived(const struct kbi_vp *vp);
uint64_t kbi_vp_progress(const struct kbi_vp *vp);
/* The same for each thread that gets its turn, also at once from another's end. */
uint64_t kbi_vp_turns(const struct kbi_vp *vp);
/* No address space for a stack: ask makes common what others keep for themselves, those awake at their next look;
 * gather does it for sleepers and me: has everybody done so since ask gave this number? np > 0. me: NULL on no VP. */
uint32_t kbi_vp_ask_for_stacks(void);
bool kbi_vp_gather_stacks(const struct kbi_vp *me, uint32_t hunger);
/* When the domain's first deadline is, or may be; UINT64_MAX: none. Keeper only. */
static inline uint64_t kbi_vp_first_deadline(const struct kbi_vp *dom)
{
	return dom->n_timed && dom->deadlines.root ? dom->deadlines.root->key : UINT64_MAX;
}

/* Temporary hold of a sleeping VP's domain; what else is the VP's own may be used by the holder, too. */
bool kbi_vp_hold(struct kbi_vp *dom);
void kbi_vp_unhold(struct kbi_vp *dom);

/* ---- the ready queue; the rest of this header is the fast path ------------------------------------ */

/* The scheduler keeps ready tasks elsewhere. */
void kbi_vp_enqueue_elsewhere(struct kbi_vp *vp, struct kbi_task *t, bool front);
struct kbi_task *kbi_vp_pop_elsewhere(struct kbi_vp *vp);
/* Work waits here and some VP is idle. */
void kbi_vp_share(struct kbi_vp *vp);

/* kbi_vp_enqueue where vp->plain; t's stack is fetched ahead by the caller. */
static inline void kbi_vp_enqueue_here(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	a_store_rlx(&t->state, vp->ready_here);
	if (kbi_likely(!vp->first && !vp->s->pq.head)) {
		vp->first = t;
		return;
	}
	if (!front) {
		kbi_pq_append(&vp->s->pq, t);
		return;
	}
	if (vp->first)
		kbi_pq_prepend(&vp->s->pq, vp->first);
	vp->first = t;
}

/* Some VP is idle, and one task waits here while another runs: a poller or a monitor looks after it, and it is not
 * yet time to wake a sleeper just in case. In line, because that is what a conversation on one VP of several meets at
 * each message. */
static inline bool kbi_vp_watched(struct kbi_vp *vp)
{
	if (a_load_rlx(&kbi_crowd.polling))
		return true;
	if (kbi_unlikely(!vp->share_skip || !a_load_rlx(&kbi_crowd.monitors)))
		return false;
	vp->share_skip--;
	return true;
}

/* Tasks have been fine: this one stays here, somebody looks after it. In line, for who creates many. */
static inline bool kbi_vp_keeps(struct kbi_vp *vp)
{
	if (!vp->fine_skip || !(a_load_rlx(&kbi_crowd.polling) | a_load_rlx(&kbi_crowd.monitors)))
		return false;
	vp->fine_skip--;
	return true;
}

/* Ready task to this VP's queue; front: next to run. Nothing of the queue is given away at this moment: also for
 * the running task itself, whose context is not saved yet. np > 0, on vp. */
static inline void kbi_vp_enqueue(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	if (kbi_likely(vp->plain)) {
		__builtin_prefetch(t->ctx.sp);
		kbi_vp_enqueue_here(vp, t, front);
	} else {
		kbi_vp_enqueue_elsewhere(vp, t, front);
	}
}

/* The same, and idle VPs may get a share. */
static inline void kbi_vp_push(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	kbi_vp_enqueue(vp, t, front);
	if (a_load_rlx(vp->idle_count) && !kbi_vp_keeps(vp) && (!vp->plain || vp->s->pq.head || !kbi_vp_watched(vp)))
		kbi_vp_share(vp);
}

/* The next ready task of vp's queue, no look at anything else. */
static inline struct kbi_task *kbi_vp_pop(struct kbi_vp *vp)
{
	struct kbi_task *t = vp->first;

	if (kbi_likely(t != NULL)) {
		vp->first = NULL;
		return t;
	}
	return kbi_likely(vp->plain) ? kbi_pq_pop(&vp->s->pq) : kbi_vp_pop_elsewhere(vp);
}

/* The next ready task in exchange for the running one, self, which is queued behind the others though its context is
 * not saved yet. NULL: there is none, or the scheduler's queue is open to others; self is not queued then. */
static inline struct kbi_task *kbi_vp_turn(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *t;

	if (kbi_unlikely(!vp->private_ready))
		return NULL;
	t = vp->s->pq.head;
	if (kbi_likely(!vp->first && t && !kbi_task_is_either(t, self, KBI_TASK_BOUND))) {
		a_store_rlx(&self->state, vp->ready_here);
		return kbi_pq_turn(&vp->s->pq, self);
	}
	t = kbi_vp_pop(vp);
	if (t)
		kbi_vp_enqueue(vp, self, false);
	return t;
}

/* The same in a few instructions where self is light and not bound: from it to another such thread that has run before.
 * NULL: it is not so simple; nothing has been done. */
static inline struct kbi_task *kbi_vp_turn_bare(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *t = vp->first;
	struct kbi_pq *q = &vp->s->pq;

	if (kbi_unlikely(t || !vp->private_ready))
		return NULL;
	t = q->head;
	if (kbi_unlikely(!t || kbi_task_is(t, KBI_TASK_NOT_BARE | KBI_TASK_BOUND)))
		return NULL;
	t = kbi_pq_turn(q, self);
	a_store_rlx(&self->state, vp->ready_here);
	return t;
}

/* Removes a READY(vp) task from vp's queue: false if another VP may have it. */
bool kbi_vp_take_elsewhere(struct kbi_vp *vp, struct kbi_task *t);
static inline bool kbi_vp_take(struct kbi_vp *vp, struct kbi_task *t)
{
	if (vp->first == t) {
		vp->first = NULL;
		return true;
	}
	if (kbi_unlikely(!vp->plain || vp->sched->take))
		return kbi_vp_take_elsewhere(vp, t);
	kbi_pq_remove(&vp->s->pq, t);
	return true;
}

/* A ready task may be queued here and nobody need be told: no VP is idle, or the task is alone in the queue and looked
 * after. Asked once a push (kbi_vp_watched counts). */
static inline bool kbi_vp_content(struct kbi_vp *vp)
{
	return a_zero32_rlx(vp->told) || (vp->plain && !vp->first && !vp->s->pq.head && kbi_vp_watched(vp));
}

/* vp's body is b. A body that is a process has another number when it was killed in between (core/revive). */
static inline void kbi_vp_renumber(struct kbi_vp *vp, const struct kbi_body *b)
{
	do
		a_store_rlx(&vp->tid, a_load_rlx(&b->tid));
	while (kbi_unlikely(a_load_rlx(&vp->tid) != a_load_rlx(&b->tid)));
}

/* b is vp's body from now on. The caller, on b, has vp, and knows which thread runs there and which block is loaded. */
static inline void kbi_vp_embody(struct kbi_vp *vp, struct kbi_body *b)
{
	b->vp = vp;
	vp->body = b;
	vp->tp = (kbi_tpword)b->tp;
	vp->self_slot = b->self_slot;
	vp->heap = b->heap;
	vp->agent_san = b->san;
	kbi_vp_renumber(vp, b);
}

#endif
