/* core/run.c - pieces of the run loop: looking at all sources, starting a thread, running one
 * from the agent. Contract in run.h. The functions that load another thread pointer are not
 * inlined and use no TLS after it. */
#include "core/run.h"

#include "core/domain.h"
#include "core/spread.h"
#include "mem/stack.h"
#include "os/sys.h"
#include "sched/source.h"

void (*kbi_run_entry)(void *thread);

void kbi_run_service(struct kbi_vp *vp, enum kbi_sched_why why)
{
	a_store_rlx(&vp->countdown, vp->poll_every);
	a_store_rlx(&vp->services, a_load_rlx(&vp->services) + 1);
	kbi_run_look_at_all(vp, why);
}

void kbi_run_look_at_all(struct kbi_vp *vp, enum kbi_sched_why why)
{
	if (kbi_vp_is_asked(vp))
		why = why == KBI_POLL_TICK ? KBI_POLL_ASKED : KBI_POLL_WANTED;
	kbi_domain_poll(vp, vp, 0);
	if (kbi_source_due())
		kbi_source_poll(vp);
	kbi_vp_exchange(vp, why);
	kbi_stack_reclaim_if_wanted(vp->id + 1);
	kbi_spread_look(vp);
}

/* Warns once if a thread without TLS of its own is suspended between catching a C++ exception
 * and having handled it, now or before. The exceptions of all light threads of a VP are in one
 * chain: after another thread has handled its exception, the wrong exception is taken from the
 * chain. Called once in many switches. */
static void warn_of_caught_exception(const struct kbi_vp *vp)
{
	static a32 said;

	if (kbi_likely(!vp->worker || !vp->worker->caught || !*vp->worker->caught) ||
		a_xchg_rlx(&said, 1)) return;
	kbi_sys_message("a light thread is suspended while it handles a C++ exception: those of other "
			"light threads of its VP get mixed up with that. Give such threads TLS of their own "
			"(kb_attr_settls), or link with -lkochab-posix");
}

void kbi_run_look(struct kbi_vp *vp)
{
	if (a_load_rlx(&vp->countdown) == 0 || a_load_rlx(&vp->wanted)) {
		warn_of_caught_exception(vp);
		kbi_run_service(vp, KBI_POLL_SWITCH);
	} else {
		kbi_domain_poll(vp, vp, 0);
	}
}

/* A block on a stack of the program gets no descriptor, because the block ends with that stack. */
void kbi_run_give_segment(struct kbi_vp *vp, struct kb_thread *t)
{
	if (!t->stack || t->stack->user)
		return;
	t->stack->tp = t->task.tp = vp->cur_tp = kbi_segment_give(t->stack->tcb.tp);
	a_fence_sc(); /* pairs with the fence in kbi_meter_start */
	if (kbi_unlikely(kbi_meter_is_on()))
		kbi_meter_undo_segment(&t->task);
}

static KBI_NOINLINE bool make_thread_context(struct kbi_vp *vp, struct kb_thread *t)
{
	if (!kbi_run_equip(vp, t))
		return false;
	/* the new context begins with the loaded words */
	kbi_run_load_fp(vp, kbi_run_first_fp(vp, t));
	kbi_ctx_make(&t->task.ctx, t->stack->low, t->stack->size, kbi_run_entry, t);
	kbi_san_make(&t->san, t->stack->low, t->stack->size);
	kbi_task_set_started(&t->task);
	return true;
}

/* Gives t the most recently used stack. If there is none (the address space is used up, and
 * other VPs keep the stacks promised at creation), t goes back into the queue. */
bool kbi_run_start(struct kbi_vp *vp, struct kbi_task *t)
{
	if (make_thread_context(vp, kbi_thread_of(t)))
		return true;
	kbi_vp_gather_stacks(vp, kbi_vp_ask_for_stacks());
	if (make_thread_context(vp, kbi_thread_of(t)))
		return true;
	kbi_vp_enqueue(vp, t, false);
	return false;
}

KBI_SWITCHER void kbi_run_task(struct kbi_vp *vp, struct kbi_task *t)
{
	struct kbi_ctx *load = kbi_run_prepare(vp, t);
	void *saved = NULL;

	if (load == &vp->agent_ctx) {
		kbi_sys_yield_to_holder(vp->lacks++);
		return;
	}
	kbi_san_depart(&saved, kbi_run_san(vp));
	kbi_ctx_switch_bare(&vp->agent_ctx, load, NULL, NULL);
	kbi_san_arrive(saved);
}
