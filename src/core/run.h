/* core/run.h - running tasks on a VP: which task is next, and the switch to it. Blocking on the
 * fast path costs one switch: the waiting thread looks for the next ready thread on its own
 * stack and switches straight to it. Only a VP with no ready thread switches to its agent.
 * Callers: wait, thread, preempt, agent, handoff, yield, sync/crew. Every function runs on vp,
 * inside np brackets of the running task. No locks. Calls domain, meter, vp, mem/stack. */
#ifndef KBI_RUN_H
#define KBI_RUN_H

#include "core/meter.h"
#include "core/vp.h"
#include "mem/heap_door.h"

/* The entry of every thread's context, set once by core/thread. */
extern KBI_HIDDEN void (*kbi_run_entry)(void *thread);

/* Looks at the domain and, when the countdown has run out, at every source. */
void kbi_run_look(struct kbi_vp *vp);

/* Returns true if there may be a message. Looks at one mailbox a switch; each service looks at
 * all of them. */
static inline bool kbi_run_attention(const struct kbi_vp *vp)
{
	if (kbi_likely(a_zero64_rlx(&vp->board.look)))
		return false;
	return kbi_unlikely(!a_zero32_rlx(&vp->board.marked)) ||
		kbi_mail_peek(&vp->board, a_load_rlx(&vp->countdown));
}

/* Counts a look, once between two tasks. Returns true if kbi_run_look is due. */
static inline bool kbi_run_is_look_due(struct kbi_vp *vp)
{
	return kbi_unlikely(a_own_dec(&vp->countdown)) || kbi_run_attention(vp);
}

static inline void kbi_run_look_if_due(struct kbi_vp *vp)
{
	if (kbi_unlikely(kbi_run_is_look_due(vp)))
		kbi_run_look(vp);
}

/* Returns the next task to run, or NULL; looks at the domain when that is due. The caller owns
 * the task. */
static inline struct kbi_task *kbi_run_next(struct kbi_vp *vp)
{
	kbi_run_look_if_due(vp);
	return kbi_vp_pop(vp);
}

/* Called when the running thread would hand vp over to a thread that is not next in the queue.
 * Returns true if it is the queue's turn: a thread that makes and joins threads one by one would
 * otherwise never look for the next thread. After true the caller calls kbi_run_next, which then
 * looks at every source. */
static inline bool kbi_run_is_others_turn(struct kbi_vp *vp)
{
	if (kbi_likely(++vp->handovers % 64) && kbi_likely(a_zero32_rlx(&vp->wanted)))
		return false;
	/* a scheduler with its own queue does not tell which thread is in front */
	vp->crowded = vp->first || !vp->plain;
	a_store_rlx(&vp->countdown, 1);
	return true;
}

/* Returns true if a joiner whose thread has ended runs before the ready tasks, because it has
 * waited for this end. If it was the queue's turn, the joiner waits in front of the queue; but
 * not if a thread stood there, whose turn it is now: two threads that only make and join threads
 * would otherwise hand vp to each other for ever. So the joiner alternates with the queue, which
 * makes progress. If the joiner went behind the queue each time, the rest of 10,000 threads that
 * it is about to join would run one by one from there. */
static inline bool kbi_run_joiner_is_next(const struct kbi_vp *vp)
{
	return vp->handovers % 64 || !vp->crowded;
}

/* Looks at every source that may make a task ready here: mail, board, deadlines, watches, inbox,
 * scheduler. Counts as a service. */
void kbi_run_service(struct kbi_vp *vp, enum kbi_sched_why why);
/* Looks at every source in the middle of a turn. It is not counted as a service, because that
 * count tells sysmon (the system monitor) whether any thread has switched. */
void kbi_run_look_at_all(struct kbi_vp *vp, enum kbi_sched_why why);
/* Agent: runs t; returns when this VP has no ready task again. */
KBI_SWITCHES void kbi_run_task(struct kbi_vp *vp, struct kbi_task *t);

/* ---- the switch: in line, in callers that are not inlined ------------------------------------ */

/* Gives t, which has never run, its stack and context. Returns false if there is no stack; t is
 * in the queue again. */
bool kbi_run_start(struct kbi_vp *vp, struct kbi_task *t);

/* Gives the TLS block of t a segment descriptor: t's turn on vp begins, and its block has been
 * loaded often enough. */
void kbi_run_give_segment(struct kbi_vp *vp, struct kb_thread *t);

/* Counts a load of a block that has no segment descriptor. Returns true when the block deserves
 * one. */
static inline bool kbi_run_deserves_segment(kbi_tpword tp)
{
	return kbi_segment_is_open() &&
		++*(uint32_t *)((char *)tp + kbi_descriptor_loads_at) == KBI_SEGMENT_LOADS;
}

/* Loads the thread pointer tp. t: the task whose block it is; NULL: the block is vp's. While
 * threads are metered no block is loaded by a descriptor. */
static inline void kbi_run_load_tp(struct kbi_vp *vp, kbi_tpword tp, struct kbi_task *t)
{
	unsigned selector = kbi_segment_selector(tp);

	if (kbi_likely(selector)) {
		kbi_tp_set_segment(selector);
		vp->cur_tp = tp;
		kbi_door_write(kbi_segment_tp(tp), vp->heap);
		return;
	}
	vp->cur_tp = tp;
	if (!KBI_HAVE_TP)
		return;
	if (kbi_likely(!a_zero32_rlx(&kbi_meter_rests))) {
		kbi_door_write((void *)tp, vp->heap);
		kbi_tp_write((void *)tp);
	} else {
		kbi_meter_turn(vp, t);
		kbi_door_write((void *)tp, vp->heap);
		kbi_tp_set((void *)tp);
	}
	if (t && kbi_unlikely(kbi_run_deserves_segment(tp)))
		kbi_run_give_segment(vp, kbi_thread_of(t));
}

static inline void kbi_run_need_tp(struct kbi_vp *vp, kbi_tpword tp, struct kbi_task *t)
{
	if (tp != vp->cur_tp)
		kbi_run_load_tp(vp, tp, t);
}

/* Makes the TLS block of t's stack the block of t. */
static inline void kbi_run_adopt_block(struct kb_thread *t)
{
	t->task.tp = kbi_meter_is_on() ? (kbi_tpword)t->stack->tcb.tp : t->stack->tp;
	*(struct kbi_task **)(t->stack->tcb.tp + kbi_self_offset) = &t->task;
}

/* Gives t a stack for its first run, the most recently used. Returns false if there is none. */
static inline bool kbi_run_equip(struct kbi_vp *vp, struct kb_thread *t)
{
	if (t->stack)
		return true;
	if (t->own_tls) {
		t->stack = kbi_stack_redeem(vp->stacks, t->stack_class);
		if (kbi_likely(t->stack != NULL))
			kbi_run_adopt_block(t);
	} else {
		t->stack = kbi_stack_get(vp->stacks, t->stack_class);
	}
	return kbi_likely(t->stack != NULL);
}

/* Returns the FP control words that t begins with: its creator's (POSIX pthread_create); if t is
 * light, the VP's. */
static inline uint64_t kbi_run_first_fp(const struct kbi_vp *vp, const struct kb_thread *t)
{
	return t->own_tls ? (uintptr_t)t->result : vp->fp;
}

/* Loads FP control words. They belong to the owner of a TLS block; light threads and the agent
 * share their VP's, and a switch to them loads these. Where the switch itself keeps the words
 * (KBI_CTX_BARE 0), a context may have been left with the words of a new context that it
 * started: so each context has its own loaded again when it goes on, and fp_now says nothing. */
static inline void kbi_run_load_fp(struct kbi_vp *vp, uint64_t fp)
{
	if (!KBI_CTX_BARE || kbi_unlikely(fp != vp->fp_now)) {
		kbi_fp_set(fp);
		vp->fp_now = fp;
	}
}

static inline void kbi_run_is_here(struct kbi_vp *vp, struct kbi_task *t)
{
	vp->cur = kbi_thread_of(t);
	a_store_rlx(&t->state, vp->running_here);
}

static inline void kbi_run_enter(struct kbi_vp *vp, struct kbi_task *t)
{
	t->vp = vp;
	kbi_run_is_here(vp, t);
}

/* Makes t (NULL: the agent) the task that runs on vp; returns the context that the caller must
 * load. No TLS access between this and the switch. */
static inline struct kbi_ctx *kbi_run_prepare(struct kbi_vp *vp, struct kbi_task *t)
{
	struct kbi_ctx *load = &vp->agent_ctx;
	struct kbi_task *owner = NULL;
	kbi_tpword tp = vp->tp;

	if (kbi_unlikely(!t) ||
	    (kbi_unlikely(kbi_task_is(t, KBI_TASK_NOT_STARTED)) && !kbi_run_start(vp, t))) {
		vp->cur = NULL;
		t = NULL;
	} else {
		kbi_run_enter(vp, t);
		load = &t->ctx;
	}
	if (t && t->tp) {
		tp = t->tp;
		owner = t;
	} else {
		*vp->self_slot = t;
		kbi_run_load_fp(vp, vp->fp);
	}
	kbi_run_need_tp(vp, tp, owner);
	return load;
}

/* Prepares a switch from a task with its own TLS block to `next`, which also has a block and has
 * run before. *fp: the words of the leaving task. They are read after the thread pointer's
 * write: each of the two waits for all instructions in flight in the processor, and so they wait
 * once (doc/why/switch.md). A signal handler may come at any time and finds `next` by its TLS:
 * on a virtual processor, this one, inside np brackets. */
static inline struct kbi_ctx *kbi_run_prepare_own(struct kbi_vp *vp, struct kbi_task *next,
	uint64_t *fp)
{
	next->vp = vp;
	kbi_compiler_barrier();
	kbi_run_need_tp(vp, next->tp, next);
	kbi_run_is_here(vp, next);
	*fp = kbi_fp_get();
	return &next->ctx;
}

/* Returns the sanitizers' record of the context that kbi_run_prepare has chosen. */
static inline const struct kbi_san *kbi_run_san(const struct kbi_vp *vp)
{
	return vp->cur ? &vp->cur->san : &vp->agent_san;
}

/* Returns the task whose context was switched away from, when it goes on. */
static inline struct kbi_task *kbi_run_resumed(struct kbi_ctx *c)
{
	return kbi_container(c, struct kbi_task, ctx);
}

/* Makes `next`, a light thread that has run before, the task that runs on vp in place of a light
 * thread. */
static inline void kbi_run_prepare_bare(struct kbi_vp *vp, struct kbi_task *next)
{
	kbi_run_enter(vp, next);
	*vp->self_slot = next;
}

/* Switches from the running task `self`, a light thread, to `next`, a light thread that has run
 * before. Contract as for kbi_run_switch_to; returns self, so that the caller need not keep it. */
KBI_SWITCHES static inline __attribute__((always_inline)) struct kbi_task *
kbi_run_switch_bare(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next,
	void *(*after)(void *), void *arg)
{
	void *saved = NULL;

	kbi_run_prepare_bare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_bare(&self->ctx, &next->ctx, after, arg));
	kbi_san_arrive(saved);
	return self;
}

/* Switches like kbi_run_switch_bare, without `after`; the switch keeps *a and *b. */
KBI_SWITCHES static inline __attribute__((always_inline)) struct kbi_task *
kbi_run_switch_keeping(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next, void **a,
	void **b)
{
	void *saved = NULL;

	kbi_run_prepare_bare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_keeping(&self->ctx, &next->ctx, a, b));
	kbi_san_arrive(saved);
	return self;
}

/* Switches from the running task `self` (already WAITING, READY in a queue, ...) to `next`,
 * which the caller owns; NULL: to the agent. Returns when self is resumed, perhaps on another
 * VP. after(arg) runs on the next stack once self's context is saved. */
KBI_SWITCHES static inline __attribute__((always_inline)) void
kbi_run_switch_to(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next,
	void *(*after)(void *), void *arg)
{
	struct kbi_ctx *load;
	void *saved = NULL;
	uint64_t fp;

	/* a few instructions suffice from one light thread to a light thread that has run before */
	if (kbi_likely(next && !kbi_task_is(next, KBI_TASK_NOT_BARE) &&
		!kbi_task_is(self, KBI_TASK_NOT_BARE))) {
		kbi_run_switch_bare(vp, self, next, after, arg);
		return;
	}
	if (self->tp && next && next->tp && !kbi_task_is(next, KBI_TASK_NOT_STARTED)) {
		load = kbi_run_prepare_own(vp, next, &fp);
		vp->fp_now = fp;
	} else {
		vp->fp_now = fp = self->tp ? kbi_fp_get() : vp->fp;
		load = kbi_run_prepare(vp, next);
	}
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_bare(&self->ctx, load, after, arg));
	kbi_san_arrive(saved);
	if (!KBI_CTX_BARE || self->tp)
		kbi_run_load_fp(self->vp, fp);
}

/* Switches like kbi_run_switch_to to a `next` that has never run and has its stack; enters it
 * there at once. */
KBI_SWITCHES static inline __attribute__((always_inline)) void
kbi_run_switch_to_new(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next)
{
	struct kb_thread *t = kbi_thread_of(next);
	uint64_t fp = KBI_CTX_BARE ? 0 : vp->fp;
	void *saved = NULL;

	if (self->tp)
		fp = vp->fp_now = kbi_fp_get();
	kbi_run_load_fp(vp, kbi_run_first_fp(vp, t));
	kbi_san_make(&t->san, t->stack->low, t->stack->size);
	kbi_task_set_started(next);
	kbi_run_prepare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_new(&self->ctx, t->stack->low, t->stack->size,
						  kbi_run_entry, t));
	kbi_san_arrive(saved);
	if (!KBI_CTX_BARE || self->tp)
		kbi_run_load_fp(self->vp, fp);
}

/* Switches like kbi_run_switch_to_new from a light thread to a light thread; returns self, so
 * that the caller need not keep it. */
KBI_SWITCHES static inline __attribute__((always_inline)) struct kbi_task *
kbi_run_switch_to_new_bare(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next)
{
	struct kb_thread *t = kbi_thread_of(next);
	void *saved = NULL;

	if (!KBI_CTX_BARE)
		kbi_run_load_fp(vp, vp->fp);
	kbi_san_make(&t->san, t->stack->low, t->stack->size);
	kbi_task_clear(next, KBI_TASK_NOT_STARTED | KBI_TASK_NOT_BARE);
	kbi_run_prepare_bare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_new(&self->ctx, t->stack->low, t->stack->size,
						  kbi_run_entry, t));
	kbi_san_arrive(saved);
	if (!KBI_CTX_BARE)
		kbi_run_load_fp(self->vp, self->vp->fp);
	return self;
}

/* Ends the running task and switches to `next`, which is READY or claimed and owned by the
 * caller; NULL: to the agent. */
KBI_SWITCHES static inline __attribute__((always_inline)) KBI_NORETURN void
kbi_run_leave_to(struct kbi_vp *vp, struct kbi_task *next, void *(*after)(void *), void *arg)
{
	struct kbi_ctx *load;

	if (kbi_likely(next && !kbi_task_is(next, KBI_TASK_NOT_BARE) &&
		!kbi_task_is(&vp->cur->task, KBI_TASK_NOT_BARE))) {
		kbi_run_prepare_bare(vp, next);
		kbi_san_depart(NULL, kbi_run_san(vp));
		kbi_ctx_leave(&next->ctx, after, arg);
	}
	if (vp->cur->task.tp)
		vp->fp_now = kbi_fp_get();
	load = kbi_run_prepare(vp, next);
	kbi_san_depart(NULL, kbi_run_san(vp));
	kbi_ctx_leave(load, after, arg);
}
#endif
