/* core/vp.h - a virtual processor runs threads one at a time. This door holds its state, its
 * ready queue and the exchange between VPs; core/run switches, core/domain wakes, core/agent
 * polls when nothing is ready.
 *
 * Domain: everything of a VP except its ready queue: its waiters, mailboxes, board, deadlines
 * and watches. `keeper` says which VP may act on the domain: the VP itself or, while it sleeps
 * in the kernel, any VP that takes the domain for a moment (a waker that wants a waiter, the
 * polling VP). So an awake VP resumes the waiters of a sleeping VP, without an unneeded wake-up
 * by the kernel.
 * Callers: core, sync, io, posix. Most functions run on the VP with np > 0; each comment names
 * exceptions. */
#ifndef KBI_VP_H
#define KBI_VP_H

#include "base/heap.h"
#include "core/descriptor.h"
#include "core/worker.h"
#include "sched/board.h"
#include "sched/sched.h"

enum kbi_keeper {
	KBI_KEEPER_SELF,    /* the VP acts on its own domain */
	KBI_KEEPER_OFFERED, /* it sleeps: any VP may take the domain (CAS to TAKEN) */
	KBI_KEEPER_TAKEN,   /* a VP acts on it for some hundred ns */
};

/* The word that a sleeping VP's futex waits on. SOURCE: a kick of the source wakes the VP. */
enum kbi_doze {
	KBI_DOZE_NO,      /* awake, or woken: the waker has written this */
	KBI_DOZE_YES,     /* in the futex or on the way to it */
	KBI_DOZE_MONITOR, /* woken only to go on dozing as a monitor */
	KBI_DOZE_SOURCE,  /* as YES, but the VP sleeps in the source of events (sched/source.h) */
};

struct kbi_watch;

/* The turn of a thread that the tick had switched away before; noted when the thread goes on:
 * core/turn. */
struct kbi_turn {
	/* written by the owner, read by sysmon */
	a64 number; /* kbi_vp_turns at its begin: the turn lasts until that changes */
	a64 since;  /* ns */
	a64 cpu;    /* the worker's processor time at the beginning, ns */
	a32 brief;  /* 1: it was found spinning */
	a32 known;  /* ready tasks at the beginning */
	/* written by the owner, read by all */
	a64 clock;  /* virtual time of the thread that was chosen last, ns */
	/* owner only */
	uint64_t begun;    /* the thread's virtual time at the beginning */
	int64_t to_rotate; /* ns until a thread goes on to the next VP */
	struct kbi_context_place place; /* place where the thread had been interrupted */
};

/* core/spread: the processor that the VP runs on. */
struct kbi_spread {
	/* owner only */
	uint32_t looks; /* calls */
	uint64_t looked, n_moves;
	/* written by sysmon (the system monitor), ns: about the attempts to move the VP */
	uint64_t patience, next;
	/* written by the VP or sysmon; cpu, seen and moves_now are for any VP */
	a32 cpu;
	a64 seen;      /* ns: when it ran there */
	a32 wanted;    /* the processor + 1 that it is to go to; 0: none */
	a32 moves_now; /* 1: its affinity is a single processor, for a moment */
};

/* A turn, as seen by the calls that end turns: core/slice. Owner only. */
struct kbi_slice {
	uint64_t turn;   /* kbi_vp_turns at its begin: the turn lasts until that changes */
	uint64_t since;  /* ns */
	uint64_t looked; /* when such a call last looked at all sources, ns */
	uint32_t quiet;  /* such calls while no thread was ready */
	a32 given;       /* calls that have given the VP away, approximate */
	/* the head of the queue if it was passed over; how often it was; when it last was, ns */
	const struct kbi_task *passed;
	uint64_t passed_since, passed_last;
};

struct kbi_vp {
	/* owner only, hot */
	struct kb_thread *cur;     /* the running thread; NULL: the agent runs */
	uint64_t waiting_here, ready_here, running_here; /* KBI_STATE(..., id), constant */
	/* ready, ahead of the Protect Queue; set only if that queue was empty at the push, or to run
	 * next */
	struct kbi_task *first;
	a32 countdown;             /* looks until the next service; a monitor peeps at it */
	/* services done; if services and countdown do not change, one thread hogs the VP */
	a64 services;
	uint32_t id;
	uint8_t plain;             /* constant; 1: the scheduler keeps ready tasks in s->pq only */
	uint8_t private_ready;     /* constant; 1: and no VP takes them there */
	uint64_t awake_bit;        /* constant; its bit in kbi_single_threaded.awake */
	a32 attempt;               /* io/hold: odd: its thread is inside an attempt; read by any VP */
	a32 attempt_watched;       /* a VP waits for the next change; set by any VP */
	kbi_tpword cur_tp;         /* the thread pointer that is loaded */
	kbi_tpword tp;             /* the VP's own TLS block, for the agent and light threads */
	void *heap;                /* the allocator's name of its kernel thread (mem/heap_door) */
	struct kbi_task **self_slot; /* kbi_self_tls in that block */
	struct kbi_ctx agent_ctx;
	/* FP control words: fp of the agent and light threads (constant), fp_now the loaded ones */
	uint64_t fp, fp_now;
	struct kbi_sched_vp *s;    /* constant; the scheduler's part */
	/* count of VPs that are not busy; in a burst the VP's own word in_burst, which is never 0 */
	a32 *idle_count;
	const a32 *told; /* for kbi_vp_content: idle_count if plain, else a word that is never 0 */
	const struct kbi_sched *sched;
	uint32_t poll_every;
	struct kbi_descriptor_cache threads;
	struct kbi_stack_slot *stacks; /* constant */
	uint32_t share_skip;       /* pushes to let pass before waking a sleeping VP again */
	a32 in_burst;              /* constant, 1 */
	/* ready tasks at the last push; and the number at which some are given away */
	uint32_t burst_last, burst_next;
	uint32_t fine_skip; /* pushes to let pass before the VP looks whether idle VPs get some */
	/* ns: when tasks of other VPs came to this VP while it was idle; s->taken before that */
	uint64_t fed_at, fed_before;
	/* ns: when it last woke many threads at a time (sync/waitq) while some VP was idle */
	uint64_t spread_at;
	/* core/steal_request: s->taken when this VP last looked whether to ask ahead */
	uint64_t asked_ahead;
	/* resumed by mail from the idle loop, to judge the length of its run */
	struct kb_thread *idle_ran;
	uint64_t idle_ran_at;      /* ticks */
	uint64_t trimmed_at;       /* ns: when it last gave back memory of stacks */
	uint64_t handovers;        /* direct hand-overs in a row, bounded */
	a32 tid;                   /* of its worker, which sets it; any VP sends the tick there */
	struct kbi_san agent_san;
	uint32_t lacks;            /* times that a thread found no stack to start on */
	uint8_t poller;            /* 1: it has a place among the pollers */
	uint8_t crowded;           /* 1: a thread headed the queue when its turn last came */
	uint8_t parked;            /* 1: it has told core/single_threaded that it runs no thread */
	struct kbi_worker *worker; /* its worker: the kernel thread that runs the VP */
	/* light threads that were preempted here; while there are any, the VP keeps its worker */
	uint32_t n_held;

	/* the domain: written by its keeper */
	struct kbi_board board KBI_ALIGNED(KBI_CACHE_LINE);
	struct kbi_heap deadlines; /* also holds nodes of ended waits: core/deadline.c */
	struct kbi_watch *watches;
	uint32_t n_timed;          /* tasks that wait, or are about to wait, with a deadline */
	a32 n_watches;             /* read by any VP */
	a32 n_rung;                /* watches whose writers wake this VP */
	uint32_t n_boarded;        /* watches whose changes are told on boards */
	/* written by the owner, read by any VP */
	/* kbi_vp_first_deadline or an earlier time; refreshed before the VP sleeps and at each
	 * service */
	a64 next_deadline KBI_ALIGNED(KBI_CACHE_LINE);

	/* written by any VP */
	a32 doze KBI_ALIGNED(KBI_CACHE_LINE); /* enum kbi_doze */
	a32 keeper;                /* enum kbi_keeper */
	aptr inbox;                /* tasks pushed from outside: a stack of WAIVED tasks */
	/* 1: an idle VP asks for work: the next look is a service; board.marked says so, too */
	a32 wanted;
	a32 asked;                 /* written by sysmon, core/quantum.c */
	a64 asked_used; /* processor time that the turn had used when asked was written, ns */
	a32 heard;                 /* ticks that have arrived; approximate */
	/* not 0: its worker is in a blocking call and the VP may be taken: core/handoff.c. 0: not
	 * lent */
	a64 lent;

	a32 place;                 /* core/place: the processor + 1 that it is bound to; 0: none */

	/* cold, owner only: statistics, and ns when idle VPs last got some of fine tasks */
	uint64_t n_sleeps KBI_ALIGNED(KBI_CACHE_LINE), n_ticks, n_mail;
	/* turns ended by force; and how many of these belonged to a spinning thread */
	uint64_t n_ended, n_brief;
	uint64_t sampled_at;
	/* ns: when it last looked, between two turns, whether idle VPs should get some */
	uint64_t looked_at;
	a64 idle_ns;               /* written by the owner, read by any VP: core/agent.c */
	/* progress and turns at the last look of a monitor, and its time, ns; written by any VP,
	 * cold */
	a64 seen_progress, seen_turns, seen_at;
	/* written by sysmon, core/quantum: its threads compute so long in each turn that a ready
	 * thread is worth a wake-up of an idle VP */
	a32 long_turns;
	struct kbi_turn turn;
	struct kbi_slice slice;
	struct kbi_spread spread;
} KBI_ALIGNED(KBI_CACHE_LINE);

/* How many VPs poll or monitor, and limits for pushes. Read by all VPs; written on the way to
 * and from idleness. */
struct kbi_idle_stats {
	/* VPs that poll after they have been idle for a moment */
	a32 polling KBI_ALIGNED(KBI_CACHE_LINE);
	a32 pollers;  /* places taken under the pollers option */
	a32 monitors; /* sleeping VPs that wake now and then to look for stuck queues */
	a32 backoff;  /* pushes to let pass before a sleeping VP is woken just in case */
	/* pushes, and their time, to let pass before an idle VP gets a task; 0: the tasks are worth
	 * moving */
	a32 fine_grained;
	a32 clocked;  /* 1: the time that VPs are idle is measured */
	a32 oversubscribed; /* 1: oversubscribed: there are fewer processors than VPs; constant */
};
extern KBI_HIDDEN struct kbi_idle_stats kbi_idle_stats;

extern KBI_HIDDEN struct kbi_vp **kbi_vps;  /* constant after boot */
extern KBI_HIDDEN unsigned kbi_vp_n;        /* 0: not booted */

/* Initialises the scheduler's part of vp. Call it before the VP runs. */
void kbi_vp_init(struct kbi_vp *vp, unsigned id, struct kbi_sched_vp *s,
	const struct kbi_sched *sched);
/* Hands a task that no VP owns to VP `to` (a bound task, a task of a foreign creator). Any
 * kernel thread. */
void kbi_vp_send(struct kbi_vp *to, struct kbi_task *t);
/* Takes the tasks in the VP's inbox. Returns how many. */
unsigned kbi_vp_receive(struct kbi_vp *vp);
/* Wakes vp if it sleeps in the kernel. The caller has published its work and fenced. */
void kbi_vp_rouse(struct kbi_vp *vp);
/* Wakes vp's worker. The caller has changed vp->doze from `doze`. */
void kbi_vp_wake_worker(struct kbi_vp *vp, uint32_t doze);

/* Returns true if an idle VP has asked for work, and clears the request. The caller then
 * exchanges tasks at once. */
static inline bool kbi_vp_is_asked(struct kbi_vp *vp)
{
	if (kbi_likely(!a_load_rlx(&vp->wanted)))
		return false;
	a_store_rlx(&vp->wanted, 0);
	return true;
}

/* Lets the scheduler exchange tasks and wakes the VPs that it names. Returns how many tasks came
 * in. */
unsigned kbi_vp_exchange(struct kbi_vp *vp, enum kbi_sched_why why);
/* The next functions are for any VP and approximate. kbi_vp_backlog returns the number of ready
 * tasks. kbi_vp_progress returns a number that grows with each look for the next task, but not
 * with the tick's looks while there is a quantum. */
unsigned kbi_vp_backlog(const struct kbi_vp *vp);
/* Returns true if vp has not yet taken tasks that were given to it. */
bool kbi_vp_arrived(const struct kbi_vp *vp);
uint64_t kbi_vp_progress(const struct kbi_vp *vp);
/* Returns a number that grows with each turn of a thread, also a turn that begins at the end of
 * another thread. */
uint64_t kbi_vp_turns(const struct kbi_vp *vp);
/* For a VP that has no address space for a stack. kbi_vp_ask_for_stacks asks every VP to make
 * its own stacks common; an awake VP does so at its next look. kbi_vp_gather_stacks does it for
 * sleepers and `me` and returns true if all VPs have done so since the request numbered
 * `request`. np > 0. me: NULL on no VP. */
uint32_t kbi_vp_ask_for_stacks(void);
bool kbi_vp_gather_stacks(const struct kbi_vp *me, uint32_t request);
/* Returns a lower bound of the domain's first deadline, ns; UINT64_MAX: none. Keeper only. */
static inline uint64_t kbi_vp_first_deadline(const struct kbi_vp *dom)
{
	return dom->n_timed && dom->deadlines.root ? dom->deadlines.root->key : UINT64_MAX;
}

/* kbi_vp_hold takes a sleeping VP's domain for a moment; returns false if it is not offered. The
 * holder may also use the owner-only fields of that VP. kbi_vp_unhold gives the domain back. */
bool kbi_vp_hold(struct kbi_vp *dom);
void kbi_vp_unhold(struct kbi_vp *dom);

/* ---- the ready queue; the rest of this header is the fast path ------------------------------- */

/* Enqueue and pop for a scheduler that keeps ready tasks outside s->pq. */
void kbi_vp_enqueue_elsewhere(struct kbi_vp *vp, struct kbi_task *t, bool front);
struct kbi_task *kbi_vp_pop_elsewhere(struct kbi_vp *vp);
/* Gives idle VPs a share: work waits here and some VP is idle. */
void kbi_vp_share(struct kbi_vp *vp);

/* kbi_vp_enqueue if vp->plain. The caller prefetches t's stack. */
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

/* Some VP is idle, and one task waits here while a task runs. Returns true if a poller or a
 * monitor looks after the waiting task and it is too early to wake a sleeper just in case. In
 * line, because a conversation on one VP of several calls it at each message. */
static inline bool kbi_vp_watched(struct kbi_vp *vp)
{
	if (kbi_unlikely(a_load_rlx(&vp->long_turns)))
		return false;
	if (a_load_rlx(&kbi_idle_stats.polling))
		return true;
	if (kbi_unlikely(!vp->share_skip || !a_load_rlx(&kbi_idle_stats.monitors)))
		return false;
	vp->share_skip--;
	return true;
}

/* Returns true if tasks have been short (fine) and this task stays here, looked after by a
 * poller or a monitor. In line, for threads that create many. */
static inline bool kbi_vp_keeps(struct kbi_vp *vp)
{
	if (!vp->fine_skip || a_load_rlx(&vp->long_turns) ||
	    !(a_load_rlx(&kbi_idle_stats.polling) | a_load_rlx(&kbi_idle_stats.monitors)))
		return false;
	vp->fine_skip--;
	return true;
}

/* Queues a ready task on this VP; front: it runs next. No task of the queue is given away at
 * this moment, so t may also be the running task, whose context is not saved yet. np > 0, on vp. */
static inline void kbi_vp_enqueue(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	if (kbi_likely(vp->plain)) {
		__builtin_prefetch(t->ctx.sp);
		kbi_vp_enqueue_here(vp, t, front);
	} else {
		kbi_vp_enqueue_elsewhere(vp, t, front);
	}
}

/* Enqueues t; idle VPs may then get a share. */
static inline void kbi_vp_push(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	kbi_vp_enqueue(vp, t, front);
	if (a_load_rlx(vp->idle_count) && !kbi_vp_keeps(vp) &&
		(!vp->plain || vp->s->pq.head || !kbi_vp_watched(vp)))
		kbi_vp_share(vp);
}

/* Returns the next ready task of vp's queue, NULL if there is none; looks at no other source. */
static inline struct kbi_task *kbi_vp_pop(struct kbi_vp *vp)
{
	struct kbi_task *t = vp->first;

	if (kbi_likely(t != NULL)) {
		vp->first = NULL;
		return t;
	}
	return kbi_likely(vp->plain) ? kbi_pq_pop(&vp->s->pq) : kbi_vp_pop_elsewhere(vp);
}

/* Exchanges the running task, self, for the next ready task, which it returns; self goes to the
 * end of the queue although its context is not saved yet. NULL: there is no ready task, or the
 * scheduler's queue is open to other VPs; self is not queued then. */
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

/* kbi_vp_turn in a few instructions, if self is light and not bound and the next thread is so,
 * too, and has run before. NULL: the case is not so simple; nothing has been done. */
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

/* Removes a READY(vp) task from vp's queue. Returns false if another VP may have it. */
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

/* Returns true if a ready task may be queued here and no VP need be told: no VP is idle, or the
 * task is alone in the queue and looked after. Call it once a push (kbi_vp_watched counts). */
static inline bool kbi_vp_content(struct kbi_vp *vp)
{
	return a_zero32_rlx(vp->told) ||
		(vp->plain && !vp->first && !vp->s->pq.head && kbi_vp_watched(vp));
}

/* Copies b's kernel thread number to vp. The number of a worker that is a process changes if it
 * was killed meanwhile (core/respawn); the loop sees that. */
static inline void kbi_vp_renumber(struct kbi_vp *vp, const struct kbi_worker *b)
{
	do
		a_store_rlx(&vp->tid, a_load_rlx(&b->tid));
	while (kbi_unlikely(a_load_rlx(&vp->tid) != a_load_rlx(&b->tid)));
}

/* Makes b the worker (kernel thread) of vp. The caller, on b, has vp and knows which thread runs
 * there and which TLS block is loaded. */
static inline void kbi_vp_embody(struct kbi_vp *vp, struct kbi_worker *b)
{
	b->vp = vp;
	vp->worker = b;
	vp->tp = (kbi_tpword)b->tp;
	vp->self_slot = b->self_slot;
	vp->heap = b->heap;
	vp->agent_san = b->san;
	kbi_vp_renumber(vp, b);
}

#endif
