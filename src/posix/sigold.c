/* posix/sigold.c - the System V and BSD functions for signals, built on pthread_sigmask, sigaction
 * and sigsuspend.
 * Callers: programs. No locks. Only sigpause may switch and is a cancellation point; the rest may
 * run handlers. */
#include "posix/posix.h"

static bool is_bad_signal(int sig)
{
	if (sig > 0 && sig < NSIG)
		return false;
	errno = EINVAL;
	return true;
}

static sigset_t sigset_of_signal(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

static int change_signal_in_mask(int how, int sig)
{
	sigset_t set;

	if (is_bad_signal(sig))
		return -1;
	set = sigset_of_signal(sig);
	return sigprocmask(how, &set, NULL);
}

KBI_POSIX_API int sighold(int sig)
{
	return change_signal_in_mask(SIG_BLOCK, sig);
}

KBI_POSIX_API int sigrelse(int sig)
{
	return change_signal_in_mask(SIG_UNBLOCK, sig);
}

KBI_POSIX_API int sigignore(int sig)
{
	struct sigaction sa = { .sa_handler = SIG_IGN };

	return sigaction(sig, &sa, NULL);
}

KBI_POSIX_API __sighandler_t sigset(int sig, __sighandler_t handler)
{
	struct sigaction sa = { .sa_handler = handler }, old;
	sigset_t set, before;

	if (handler == SIG_ERR || is_bad_signal(sig)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	set = sigset_of_signal(sig);
	if (sigaction(sig, handler == SIG_HOLD ? NULL : &sa, &old))
		return SIG_ERR;
	sigprocmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
	return sigismember(&before, sig) ? SIG_HOLD : old.sa_handler;
}

KBI_POSIX_API int kbi_posix_sigpause(int sig) __asm__("__xpg_sigpause");
KBI_POSIX_API int kbi_posix_sigpause(int sig)
{
	sigset_t set;

	if (is_bad_signal(sig))
		return -1;
	sigprocmask(SIG_BLOCK, NULL, &set);
	sigdelset(&set, sig);
	return sigsuspend(&set);
}

/* Converts a BSD mask, which has 32 bits. */
static sigset_t sigset_of_bsd_mask(int mask)
{
	sigset_t set;

	sigemptyset(&set);
	for (int sig = 1; sig < 32; sig++)
		if ((unsigned)mask >> (sig - 1) & 1)
			sigaddset(&set, sig);
	return set;
}

static int bsd_mask_of_sigset(const sigset_t *set)
{
	unsigned mask = 0;

	for (int sig = 1; sig <= 32; sig++)
		mask |= (unsigned)(sigismember(set, sig) == 1) << (sig - 1);
	return (int)mask;
}

KBI_POSIX_API int kbi_posix_bsd_sigpause(int mask) __asm__("sigpause");
KBI_POSIX_API int kbi_posix_bsd_sigpause(int mask)
{
	sigset_t set = sigset_of_bsd_mask(mask);

	return sigsuspend(&set);
}

KBI_POSIX_API int kbi_posix_sigpause_either(int sig_or_mask, int is_sig) __asm__("__sigpause");
KBI_POSIX_API int kbi_posix_sigpause_either(int sig_or_mask, int is_sig)
{
	return is_sig ? kbi_posix_sigpause(sig_or_mask) : kbi_posix_bsd_sigpause(sig_or_mask);
}

KBI_POSIX_API int sigblock(int mask)
{
	sigset_t set = sigset_of_bsd_mask(mask), before;

	return sigprocmask(SIG_BLOCK, &set, &before) ? -1 : bsd_mask_of_sigset(&before);
}

KBI_POSIX_API int sigsetmask(int mask)
{
	sigset_t set = sigset_of_bsd_mask(mask), before;

	return sigprocmask(SIG_SETMASK, &set, &before) ? -1 : bsd_mask_of_sigset(&before);
}

KBI_POSIX_API int siggetmask(void)
{
	sigset_t now;

	sigprocmask(SIG_BLOCK, NULL, &now);
	return bsd_mask_of_sigset(&now);
}
