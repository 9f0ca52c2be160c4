/* posix/signal_older.c - the functions older than sigaction (signal, sysv_signal, siginterrupt),
 * built on sigaction.
 * Callers: programs. No locks, never switches. */
#include "posix/signal_priv.h"

static a64 restart_not; /* signals for which siginterrupt has turned restarting off */

static sighandler_t set_handler(int sig, sighandler_t handler, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags }, old;

	if (handler == SIG_ERR || sig < 1 || sig > KBI_SIGNALS) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (!(flags & SA_NODEFER))
		sigaddset(&sa.sa_mask, sig);
	return sigaction(sig, &sa, &old) ? SIG_ERR : old.sa_handler;
}

KBI_POSIX_API sighandler_t signal(int sig, sighandler_t handler)
{
	bool ends = kbi_signal_ok(sig) && (a_load_rlx(&restart_not) & kbi_signal_bit(sig));

	return set_handler(sig, handler, ends ? 0 : SA_RESTART);
}

KBI_POSIX_ALIAS(bsd_signal, signal);
KBI_POSIX_ALIAS(ssignal, signal);

KBI_POSIX_API sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

KBI_POSIX_ALIAS(__sysv_signal, sysv_signal);

KBI_POSIX_API int siginterrupt(int sig, int ends)
{
	struct sigaction sa;

	if (sigaction(sig, NULL, &sa))
		return -1;
	if (ends)
		a_or_rlx(&restart_not, kbi_signal_bit(sig));
	else
		a_and_rlx(&restart_not, ~kbi_signal_bit(sig));
	sa.sa_flags = ends ? sa.sa_flags & ~SA_RESTART : sa.sa_flags | SA_RESTART;
	return sigaction(sig, &sa, NULL);
}
