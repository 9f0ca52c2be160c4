/* posix/signal_mask.c - pthread_sigmask and sigprocmask. The mask of a thread on a VP is in its
 * descriptor, and the kernel has the mask of the thread that runs there. The mask of a bound
 * thread, which keeps a kernel thread of its own, is in the kernel, and the descriptor has a copy
 * (signal_bound).
 * Callers: programs. Runs on the thread's stack. No locks. Runs handlers, and may switch. */
#include "posix/signal_priv.h"

#include <errno.h>

static int compute_new_mask(uint64_t old, int how, uint64_t set, uint64_t *mask)
{
	switch (how) {
	case SIG_BLOCK:
		*mask = old | set;
		return 0;
	case SIG_UNBLOCK:
		*mask = old & ~set;
		return 0;
	case SIG_SETMASK:
		*mask = set;
		return 0;
	default:
		return EINVAL;
	}
}

/* Changes the mask of a bound thread. The kernel acts at once; a signal that comes before the copy
 * is written corrects the copy (relay). */
static int change_bound_mask(struct kbi_task *self, int how, const sigset_t *set, sigset_t *old)
{
	uint64_t before = a_load_rlx(kbi_signal_mask(self)), mask;
	int e = compute_new_mask(before, how, kbi_signal_from_set(set), &mask);

	if (e == 0)
		e = kbi_libc()->pthread_sigmask(how, set, old);
	if (e)
		return e;
	mask &= ~kbi_signal_kept;
	a_store_rlx(kbi_signal_mask(self), mask);
	if (before & ~mask)
		kbi_signal_opened(before & ~mask);
	kbi_signal_push(self);
	return 0;
}

static int change_kernel_thread_mask(int how, const sigset_t *set, sigset_t *old)
{
	struct kbi_task *self = kbi_signal_bound_self();

	return set && self ? change_bound_mask(self, how, set, old) :
		kbi_libc()->pthread_sigmask(how, set, old);
}

KBI_POSIX_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	struct kbi_task *self = kbi_posix_light();
	uint64_t before, mask;

	kbi_posix_let_turn_end();
	if (!self)
		return change_kernel_thread_mask(how, set, old);
	before = a_load_rlx(kbi_signal_mask(self));
	if (set) {
		int e = compute_new_mask(before, how, kbi_signal_from_set(set), &mask);

		if (e)
			return e;
		kbi_signal_take_mask(self, mask);
	}
	if (old)
		kbi_signal_to_set(old, before);
	return 0;
}

KBI_POSIX_API int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int e = pthread_sigmask(how, set, old);

	if (e == 0)
		return 0;
	errno = e;
	return -1;
}
