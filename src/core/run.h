/* core/run.h - running tasks on a VP: which is next, and the switch to it. Blocking on the fast path costs one
 * switch: the waiting thread looks for the next ready one on its own stack and goes straight to it; only a VP with
 * nothing ready goes to its agent. Every function runs on vp, inside np brackets of the running task.
 * Callers: wait, thread, preempt, agent. Calls domain, meter, vp, mem/stack. */
#ifndef KBI_RUN_H
#define KBI_RUN_H

#include "core/meter.h"
#include "core/vp.h"
#include "mem/heap_door.h"

/* Entry of every thread's context, set once by core/thread. */
extern KBI_HIDDEN void (*kbi_run_entry)(void *thread);

/* Looks at the domain, and at everything when the countdown has run out. */
void kbi_run_look(struct kbi_vp *vp);

/* Is there a message? One mailbox a switch, all of them at each service. */
static inline bool kbi_run_attention(const struct kbi_vp *vp)
{
	if (kbi_likely(a_zero64_rlx(&vp->board.look)))
		return false;
	return kbi_unlikely(!a_zero32_rlx(&vp->board.marked)) || kbi_mail_peek(&vp->board, a_load_rlx(&vp->countdown));
}

/* Once between two tasks. */
static inline bool kbi_run_is_look_due(struct kbi_vp *vp)
{
	return kbi_unlikely(a_own_dec(&vp->countdown)) || kbi_run_attention(vp);
}

static inline void kbi_run_look_if_due(struct kbi_vp *vp)
{
	if (kbi_unlikely(kbi_run_is_look_due(vp)))
		kbi_run_look(vp);
}

/* Next task to run, or NULL; looks at the domain when that is due. The caller owns the task. */
static inline struct kbi_task *kbi_run_next(struct kbi_vp *vp)
{
	kbi_run_look_if_due(vp);
	return kbi_vp_pop(vp);
}

/* The running thread would hand over to another one that is not the next in the queue. Not for ever: who makes and joins
 * threads one by one looks for no next one otherwise. So now and then kbi_run_next follows, and looks at everything. */
static inline bool kbi_run_is_others_turn(struct kbi_vp *vp)
{
	if (kbi_likely(++vp->handovers % 64) && kbi_likely(a_zero32_rlx(&vp->wanted)))
		return false;
	vp->crowded = vp->first || !vp->plain; /* a scheduler that has the queue does not tell who stands in front */
	a_store_rlx(&vp->countdown, 1);
	return true;
}

/* A joiner whose thread has ended runs before what is ready, for it has waited for this. If it was others' turn it stands
 * in front of the queue meanwhile; but not if another one stood there, which has its turn now: two threads that do nothing
 * but make and join others would else hand vp to each other for ever. So it alternates with the queue, which gets on.
 * Behind the queue each time, the rest of 10,000 that it is about to join would run one by one from there. */
static inline bool kbi_run_joiner_is_next(const struct kbi_vp *vp)
{
	return vp->handovers % 64 || !vp->crowded;
}

/* Mail, board, deadlines, watches, inbox, scheduler: everything that may make a task ready here. */
void kbi_run_service(struct kbi_vp *vp, enum kbi_sched_why why);
/* The same amid a turn: it is not counted, for the number tells the lookout whether anything has switched. */
void kbi_run_look_at_all(struct kbi_vp *vp, enum kbi_sched_why why);
/* Agent: runs t; returns when this VP has nothing ready again. */
KBI_SWITCHES void kbi_run_task(struct kbi_vp *vp, struct kbi_task *t);

/* ---- the switch: in line, in functions that are not ------------------------------------------------- */

/* t has never run: it gets its stack and context now. False: no stack to be had, t is in the queue again. */
bool kbi_run_start(struct kbi_vp *vp, struct kbi_task *t);

/* The block of t, whose turn on vp begins, has been loaded so often that it is worth a descriptor. */
void kbi_run_give_segment(struct kbi_vp *vp, struct kb_thread *t);

/* Counts the loads of a block without one. */
static inline bool kbi_run_deserves_segment(kbi_tpword tp)
{
	return kbi_segment_is_open() && ++*(uint32_t *)((char *)tp + kbi_descriptor_loads_at) == KBI_SEGMENT_LOADS;
}

/* t: whose it is; NULL: vp's. While threads are metered no block is loaded by a descriptor. */
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

/* The block with t's TLS is t's from now on. */
static inline void kbi_run_adopt_block(struct kb_thread *t)
{
	t->task.tp = kbi_meter_is_on() ? (kbi_tpword)t->stack->tcb.tp : t->stack->tp;
	*(struct kbi_task **)(t->stack->tcb.tp + kbi_self_offset) = &t->task;
}

/* The stack for t's first run, the hottest. False: none to be had. */
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

/* The FP control words it begins with: POSIX pthread_create, its creator's; light: the VP's. */
static inline uint64_t kbi_run_first_fp(const struct kbi_vp *vp, const struct kb_thread *t)
{
	return t->own_tls ? (uintptr_t)t->result : vp->fp;
}

/* FP control words belong to who owns a TLS block; light threads and the agent share their VP's, which are loaded by
 * who switches to them. Where the switch itself keeps them (KBI_CTX_BARE 0), a context may have been left with those
 * of a new one it started: so each has its own loaded again when it goes on, and fp_now says nothing. */
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

/* Makes t (NULL: the agent) the one that runs on vp, but for the context that is returned. No TLS access between
 * this and the switch. */
static inline struct kbi_ctx *kbi_run_prepare(struct kbi_vp *vp, struct kbi_task *t)
{
	struct kbi_ctx *load = &vp->agent_ctx;
	struct kbi_task *owner = NULL;
	kbi_tpword tp = vp->tp;

	if (kbi_unlikely(!t) || (kbi_unlikely(kbi_task_is(t, KBI_TASK_NOT_STARTED)) && !kbi_run_start(vp, t))) {
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

/* The same from a task with a block of its own to another one, which has run before. *fp: the words of the one before,
 * which are read behind the thread pointer's write: either waits for all that is on its way in the processor, and so
 * they wait once (doc/why/switch.md). A handler may come at any time and finds next by its TLS: on a virtual processor,
 * this one, inside np brackets. */
static inline struct kbi_ctx *kbi_run_prepare_own(struct kbi_vp *vp, struct kbi_task *next, uint64_t *fp)
{
	next->vp = vp;
	kbi_compiler_barrier();
	kbi_run_need_tp(vp, next->tp, next);
	kbi_run_is_here(vp, next);
	*fp = kbi_fp_get();
	return &next->ctx;
}

/* What sanitizers know of the context that kbi_run_prepare has chosen. */
static inline const struct kbi_san *kbi_run_san(const struct kbi_vp *vp)
{
	return vp->cur ? &vp->cur->san : &vp->agent_san;
}

/* The task whose context was switched away from, when it goes on. */
static inline struct kbi_task *kbi_run_resumed(struct kbi_ctx *c)
{
	return kbi_container(c, struct kbi_task, ctx);
}

/* Makes next, light, which has run before, the one that runs on vp in the place of a light one. */
static inline void kbi_run_prepare_bare(struct kbi_vp *vp, struct kbi_task *next)
{
	kbi_run_enter(vp, next);
	*vp->self_slot = next;
}

/* The running task `self`, light, gives up vp to another light one that has run before. Contract as below; self, which
 * need not be kept. */
KBI_SWITCHES static inline __attribute__((always_inline)) struct kbi_task *
kbi_run_switch_bare(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next, void *(*after)(void *), void *arg)
{
	void *saved = NULL;

	kbi_run_prepare_bare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_bare(&self->ctx, &next->ctx, after, arg));
	kbi_san_arrive(saved);
	return self;
}

/* The same; *a and *b are kept. */
KBI_SWITCHES static inline __attribute__((always_inline)) struct kbi_task *
kbi_run_switch_keeping(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next, void **a, void **b)
{
	void *saved = NULL;

	kbi_run_prepare_bare(vp, next);
	kbi_san_depart(&saved, kbi_run_san(vp));
	self = kbi_run_resumed(kbi_ctx_switch_keeping(&self->ctx, &next->ctx, a, b));
	kbi_san_arrive(saved);
	return self;
}

/* The running task `self` (already WAITING, READY in a queue, ...) gives up vp to `next`, which the caller owns;
 * NULL: to the agent. Returns when self is resumed, perhaps elsewhere. after(arg) runs once self's context is
 * saved. */
KBI_SWITCHES static inline __attribute__((always_inline)) void
kbi_run_switch_to(struct kbi_vp *vp, struct kbi_task *self, struct kbi_task *next, void *(*after)(void *), void *arg)
{
	struct kbi_ctx *load;
	void *saved = NULL;
	uint64_t fp;

	/* in a few instructions from one light thread to another that has run before */
	if (kbi_likely(next && !kbi_task_is(next, KBI_TASK_NOT_BARE) && !kbi_task_is(self, KBI_TASK_NOT_BARE))) {
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

/* The same for a `next` that has never run and has its stack: it is entered there at once. */
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
	self = kbi_run_resumed(kbi_ctx_switch_new(&self->ctx, t->stack->low, t->stack->size, kbi_run_entry, t));
	kbi_san_arrive(saved);
	if (!KBI_CTX_BARE || self->tp)
		kbi_run_load_fp(self->vp, fp);
}

/* The same from a light thread to a light one; self, which need not be kept. */
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
	self = kbi_run_resumed(kbi_ctx_switch_new(&self->ctx, t->stack->low, t->stack->size, kbi_run_entry, t));
	kbi_san_arrive(saved);
	if (!KBI_CTX_BARE)
		kbi_run_load_fp(self->vp, self->vp->fp);
	return self;
}

/* The running task ends here: `next` goes on, READY or claimed and the caller's. */
KBI_SWITCHES static inline __attribute__((always_inline)) KBI_NORETURN void
kbi_run_leave_to(struct kbi_vp *vp, struct kbi_task *next, void *(*after)(void *), void *arg)
{
	struct kbi_ctx *load;

	if (kbi_likely(next && !kbi_task_is(next, KBI_TASK_NOT_BARE) && !kbi_task_is(&vp->cur->task, KBI_TASK_NOT_BARE))) {
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
