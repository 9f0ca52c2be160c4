/* core/thread_loss.c - the end of a crashed thread. Contract in thread.h. Runs as that thread, on a
 * stack that is not the thread's; completed on the next context's stack. Its descriptor, stack and
 * TLS block are never used again: the block has pending destructors that must not run, and any
 * thread may know all three. The stack's memory goes back when the thread is joined, or at once if
 * it is detached. */
#include "core/domain.h"
#include "core/live_threads.h"
#include "core/run.h"
#include "core/thread.h"
#include "core/thread_priv.h"
#include "core/wait.h"
#include "libc/return_hook.h"
#include "os/memory.h"
#include "os/sys.h"

#include <errno.h>
#include <sys/mman.h>

struct loss {
	struct kb_thread *t;
	void (*done)(void *);
	void *arg;
};

/* Gives back all pages of the stack but the pages with its record. */
static void clear_lost_stack(const struct kbi_stack *s)
{
	uintptr_t from = ((uintptr_t)s->low + KBI_PAGE - 1) & ~(uintptr_t)(KBI_PAGE - 1);
	uintptr_t to = ((uintptr_t)s->low + s->size) & ~(uintptr_t)(KBI_PAGE - 1);

	if (to <= from)
		return;
	if (kbi_memory_holds((void *)from, to - from))
		kbi_memory_clear((void *)from, to - from);
	else
		kbi_sys(SYS_madvise, from, to - from, MADV_DONTNEED);
}

int kbi_thread_bury(struct kb_thread *t)
{
	if (t->stack)
		clear_lost_stack(t->stack);
	t->stack = NULL;
	/* partner: the acquire in kbi_descriptor_valid */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_FREE, 0));
	return EOWNERDEAD;
}

/* Completes the end on the next context's stack; the loss lies on the stack that was left. */
static void *complete_loss(void *arg)
{
	struct loss l = *(struct loss *)arg;
	struct kbi_vp *vp = l.t->task.vp;
	void *old;

	l.done(l.arg);
	/* release: as in thread.c, complete_thread_end */
	a_store_rel(&l.t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
	/* acquire and release: as in thread.c, complete_thread_end */
	old = a_xchg_acqrel(&l.t->join, KBI_JOIN_LOST);
	if (old == KBI_JOIN_DETACHED)
		kbi_thread_bury(l.t);
	else if (old)
		kbi_domain_wake(vp, old, false);
	return NULL;
}

KBI_SWITCHER void kbi_thread_lose(struct kb_thread *t, void (*done)(void *), void *arg)
{
	struct loss l = { t, done, arg };
	struct kbi_vp *vp;

	kbi_return_hook_forget(t);
	t->result = NULL;
	kbi_live_threads_ended(t->task.vp);
	kbi_np_enter(&t->task);
	vp = t->task.vp;
	if (!t->task.tp) {
		kbi_fp_set(vp->fp);
		vp->fp_now = vp->fp;
	}
	kbi_run_leave_to(vp, kbi_run_next(vp), complete_loss, &l);
}

unsigned kbi_thread_lose_system(int pid, void (*told)(struct kb_thread *t))
{
	unsigned n = 0;

	for (uint32_t i = 0, end = kbi_descriptor_limit(); i < end; i++) {
		struct kb_thread *t = kbi_descriptor_at(i);
		void *old;

		/* acquire: partner is the release in create_system */
		if (kbi_state_kind(a_load_acq(&t->task.state)) != KBI_TASK_FOREIGN || !t->fn ||
		    t->pid != (uint64_t)pid)
			continue;
		told(t);
		kbi_live_threads_count(&kbi_live_threads[0].ended, true);
		/* release: as in complete_loss */
		a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_DONE, 0));
		/* acquire and release: as in complete_loss */
		old = a_xchg_acqrel(&t->join, KBI_JOIN_LOST);
		if (old && old != KBI_JOIN_DETACHED)
			kbi_wait_wake(old);
		n++;
	}
	return n;
}
