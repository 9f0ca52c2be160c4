/* posix/cancel.c - pthread_cancel, deferred. The state lives where libc has it, in the cancelhandling word
 * of each thread's own control block, so libc's setcancelstate, setcanceltype, testcancel and its own
 * cancellation points work unchanged on lightweight threads. We set the mark (libc's pthread_cancel would
 * signal a kernel thread that does not exist) and wake the thread if it waits in one of our cancellation
 * points. Asynchronous cancellation acts at the next cancellation point. A thread inside a blocking system
 * call sees the mark when that returns. Where libc does not tell the word's place: ENOSYS, with one message.
 * Callers: programs, this room. */
#include "posix/posix.h"

#include <dlfcn.h>

#include "core/wait.h"
#include "os/sys.h"

ptrdiff_t kbi_cancel_at;

/* As glibc tells debuggers: bits, count, offset. Checked by switching cancellation off and on. */
void kbi_cancel_find(void)
{
	const uint32_t *place = dlsym(RTLD_DEFAULT, "_thread_db_pthread_cancelhandling");
	int old;
	bool ok;

	if (kbi_cancel_at || !place || place[0] != 32)
		return;
	kbi_cancel_at = (ptrdiff_t)place[2];
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	ok = a_load_rlx(kbi_cancel_word(pthread_self())) & KBI_CANCEL_DISABLED;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	ok = ok && !(a_load_rlx(kbi_cancel_word(pthread_self())) & KBI_CANCEL_DISABLED);
	pthread_setcancelstate(old, NULL);
	if (!ok)
		kbi_cancel_at = 0;
}

void kbi_cancel_fresh(pthread_t t)
{
	uint32_t old = kbi_cancel_at ? a_load_rlx(kbi_cancel_word(t)) : 0;

	if (kbi_unlikely(old))
		a_store_rlx(kbi_cancel_word(t), 0); /* nobody knows the new thread yet */
}

void kbi_cancel_act(void)
{
	pthread_testcancel();
}

int kbi_posix_stop(struct kbi_task *self)
{
	return kbi_unlikely(kbi_cancel_pending()) ? ECANCELED : kbi_posix_stop_signal(self);
}

static int cancel_light(struct kb_thread *t, pthread_t id)
{
	static a32 said;

	if (!kbi_cancel_at) {
		if (!a_xchg_rlx(&said, 1))
			kbi_sys_message("pthread_cancel: this libc does not tell where its mark is");
		return ENOSYS;
	}
	a_or_acqrel(kbi_cancel_word(id), KBI_CANCEL_CANCELING | KBI_CANCEL_CANCELED);
	kbi_wait_wake(&t->task);
	return 0;
}

KBI_POSIX_API int pthread_cancel(pthread_t id)
{
	bool gone;
	struct kb_thread *t = kbi_posix_thread(id, &gone);
	struct kbi_task *task;
	int e;

	if (gone)
		return ESRCH;
	if (t && !pthread_equal(id, pthread_self()))
		return cancel_light(t, id);
	task = kbi_posix_task(id);
	e = kbi_libc()->pthread_cancel(id);
	/* a kernel thread may sleep in one of our waits */
	if (e == 0 && task)
		kbi_wait_wake(task);
	return e;
}
