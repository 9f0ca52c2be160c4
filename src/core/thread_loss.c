/* core/thread_loss.c - the end of a thread that has crashed. Contract in thread.h.
 * Runs on a stack that is not the thread's, as that thread; completed on the next context's stack. */
#include "core/domain.h"
#include "core/run.h"
#include "core/tally.h"
#include "core/thread.h"
#include "core/thread_priv.h"
#include "core/wait.h"
#include "os/sys.h"
#include "os/tcb.h"

struct loss {
	struct kb_thread *t;
	void (*done)(void *);
	void *arg;
};

/* Runs on the next context's stack; the loss lies on the one that was left. The descriptor and, until it is joined, the
 * stack are not used again. */
static void *after_loss(void *arg)
{
	struct loss l = *(struct loss *)arg;
	struct kbi_vp *vp = l.t->task.vp;
	void *old;

	l.done(l.arg);
	kbi_san_end(&l.t->san);
	a_store_rel(&l.t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
	/* acquire and release: as in ended */
	old = a_xchg_acqrel(&l.t->join, KBI_JOIN_LOST);
	if (old && old != KBI_JOIN_DETACHED)
		kbi_domain_wake(vp, old, false);
	return NULL;
}

KBI_SWITCHER void kbi_thread_lose(struct kb_thread *t, void (*done)(void *), void *arg)
{
	struct loss l = { t, done, arg };
	struct kbi_vp *vp;

	t->result = NULL;
	kbi_tally_ended(t->task.vp);
	if (t->own_tls && t->stack)
		kbi_tcb_reset(&t->stack->tcb, &t->task);
	kbi_np_enter(&t->task);
	vp = t->task.vp;
	if (!t->task.tp) {
		kbi_fp_set(vp->fp);
		vp->fp_now = vp->fp;
	}
	kbi_run_leave_to(vp, kbi_run_next(vp), after_loss, &l);
}

bool kbi_thread_is_lost(const struct kb_thread *t)
{
	/* acquire: partner is the exchange in after_loss */
	return a_load_acq(&t->join) == KBI_JOIN_LOST;
}

unsigned kbi_thread_lose_system(int pid, void (*told)(struct kb_thread *t))
{
	unsigned n = 0;

	for (uint32_t i = 0, end = kbi_descriptor_limit(); i < end; i++) {
		struct kb_thread *t = kbi_descriptor_at(i);
		void *old;

		if (kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_FOREIGN || !t->fn || t->deadline.key != (uint64_t)pid)
			continue;
		told(t);
		kbi_tally_count(&kbi_tally[0].ended, true);
		a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
		old = a_xchg_acqrel(&t->join, KBI_JOIN_LOST); /* as in ended */
		if (old && old != KBI_JOIN_DETACHED)
			kbi_wait_wake(old);
		n++;
	}
	return n;
}
