/* posix/cancel.c - pthread_cancel, deferred and asynchronous. The cancellation state is where libc
 * has it, in the word `cancelhandling` of each thread's control block. So libc's setcancelstate,
 * testcancel and cancellation points work unchanged on lightweight threads. We set the mark (libc's
 * pthread_cancel would signal a kernel thread that does not exist), wake the thread if it waits in
 * a function of ours, and, if it runs, send libc's own signal for cancellation to its kernel thread
 * (signal_sigcancel.c). If the word's place is unknown (posix/cancel_word): ENOSYS, with one
 * message.
 * Callers: programs, this room, also the end of a thread (posix/key). Runs on the caller's stack.
 * No locks, never switches. */
#include "posix/posix.h"

#include "core/handoff.h"
#include "core/vp.h"
#include "core/wait.h"
#include "libc/asked.h"
#include "os/sys.h"

int kbi_posix_stop(struct kbi_task *self)
{
	return kbi_unlikely(kbi_cancel_pending()) ? ECANCELED : kbi_posix_stop_signal(self);
}

/* libc acts at once if the mark is already set. From here on every suspension looks for the
 * mark. */
KBI_POSIX_API int pthread_setcanceltype(int type, int *old)
{
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		a_store_rlx(&kbi_signal_watch, 1);
	return kbi_libc()->pthread_setcanceltype(type, old);
}

/* ---- calling out ----------------------------------------------------------------------------- */

/* Tests whether libc's system calls say in the word, by an atomic change, that they may be
 * cancelled. Where the type has a byte of its own they say so by a plain store, which another
 * processor may see later. */
static bool region_is_marked(void)
{
	return !kbi_cancel_state_at && !kbi_cancel_goes_by_place();
}

/* Tests whether a signal is of use to the thread. */
static bool is_open(uint32_t word)
{
	enum { SHUT = KBI_CANCEL_DISABLED | KBI_CANCEL_EXITING };

	return !(word & SHUT) && (word & KBI_CANCEL_ASYNC || !region_is_marked());
}

/* Sends SIGCANCEL to t's kernel thread if t is where the signal is of use. Another thread that is
 * there by then ignores the signal, but the signal may end a poll or the like with EINTR: so an
 * ending thread waits for us in kbi_posix_settle. */
static int call_out(struct kb_thread *t, pthread_t id)
{
	a16 *calling = &t->calling;
	uint64_t st;
	int tid = 0, e = 0;

	a_add_acqrel(calling, 1);
	a_fence_sc(); /* partner: libc's atomic change of the word when the thread begins to unwind */
	/* acquire: partner is the release store of the state at t's resume */
	st = a_load_acq(&t->task.state);
	if (kbi_state_kind(st) == KBI_TASK_RUNNING)
		tid = (int)a_load_rlx(&kbi_vps[kbi_state_vp(st)]->tid);
	else if (kbi_state_kind(st) == KBI_TASK_BLOCKED)
		tid = kbi_handoff_tid(t);
	if (tid && is_open(kbi_cancel_bits(id)))
		e = kbi_signal_kick(tid);
	/* release: partner is the acquire in kbi_posix_settle */
	a_sub_acqrel(calling, 1);
	return e;
}

static int cancel_light(struct kb_thread *t, pthread_t id)
{
	static a32 said;

	if (!kbi_cancel_at) {
		if (!a_xchg_rlx(&said, 1))
			kbi_asked_missed("cancellation mark", "not found: pthread_cancel is refused, ENOSYS");
		return ENOSYS;
	}
	a_or_acqrel(kbi_cancel_word(id), KBI_CANCEL_CANCELING | KBI_CANCEL_CANCELED);
	/* partner: libc's atomic change of the word when the thread enters a cancellation point */
	a_fence_sc();
	kbi_wait_wake(&t->task);
	return call_out(t, id);
}

KBI_POSIX_API int pthread_cancel(pthread_t id)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	struct kbi_task *task;
	int e;

	if (gone)
		return ESRCH;
	if (kbi_unlikely(t && kbi_posix_forked))
		return 0; /* the thread has not come along through fork */
	kbi_signal_listen();
	if (t && !pthread_equal(id, pthread_self()))
		return cancel_light(t, id);
	task = kbi_posix_task(id);
	e = kbi_libc()->pthread_cancel(id);
	/* a kernel thread may sleep in one of our waits */
	if (e == 0 && task)
		kbi_wait_wake(task);
	return e;
}

/* ---- the end of a thread --------------------------------------------------------------------- */

/* Marks the ending caller as exiting: its destructors are not cancelled, as there is no frame left
 * to unwind to. A mark that is set at this moment may get lost. If the thread was open until now, a
 * canceller may be about to signal it. Elsewhere the thread is open only in libc's cancellation
 * points, which close with an atomic change of the word: then a canceller is seen here without a
 * fence. */
void kbi_cancel_over(void)
{
	a32 *word = kbi_cancel_word(kbi_posix_self());
	struct kbi_task *self = kbi_posix_light();
	uint32_t before;

	if (!kbi_cancel_at)
		return;
	before = kbi_cancel_bits(kbi_posix_self());
	a_store_rlx(word, a_load_rlx(word) | KBI_CANCEL_EXITING);
	if (kbi_unlikely(is_open(before)))
		a_fence_sc(); /* partner: the fence in call_out */
	if (kbi_unlikely(self && a_load_rlx(&kbi_thread_of(self)->calling)))
		kbi_posix_settle();
}
