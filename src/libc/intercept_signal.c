/* libc/intercept_signal.c - the program's action for a signal of ours. Contract in
 * intercept_signal.h. Nearly all signals are blocked in our handler, so that a signal which comes
 * meanwhile interrupts the intercepted code, not the handler. The program's own handler gets the
 * mask that it would have had. */
#include "libc/intercept_signal.h"

#include <string.h>
#include <ucontext.h>

#include "libc/broadcast.h"
#include "os/lock.h"
#include "os/sys.h"

/* number of words in the kernel's struct, x86-64 */
enum { HANDLER, FLAGS, RESTORER, MASK, WORDS, MASK_BYTES = 8, SIGNALS = 64 };
#define HAS_RESTORER ((uint64_t)0x04000000)

static struct {
	int sig;
	a32 lock;
	uint64_t programs[WORDS]; /* under the lock */
} taken;

int kbi_intercept_signal(void)
{
	return taken.sig;
}

static uint64_t bit_of_signal(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

static void exchange_action(const uint64_t *new, uint64_t *old)
{
	uint64_t before[WORDS];

	kbi_lock_take(&taken.lock);
	memcpy(before, taken.programs, sizeof before);
	if (new)
		memcpy(taken.programs, new, sizeof taken.programs);
	kbi_lock_leave(&taken.lock);
	if (old)
		memcpy(old, before, sizeof before);
}

long kbi_intercept_signal_action(const void *new, void *old)
{
	exchange_action(new, old);
	return 0;
}

/* Takes the default action, also where the signal cannot be ignored. */
static void take_default_action(int sig, const siginfo_t *info, void *context, unsigned again)
{
	const uint64_t dfl[WORDS] = { 0 };

	kbi_sys(SYS_rt_sigaction, sig, dfl, NULL, MASK_BYTES);
	if (info->si_code <= 0 || !again) {
		kbi_sys(SYS_tkill, kbi_sys_gettid(), sig);
		return;
	}
#if defined(__x86_64__)
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= again;
#else
	(void)context;
#endif
}

void kbi_intercept_signal_others(int sig, siginfo_t *info, void *context, unsigned again)
{
	uint64_t action[WORDS], mask, before;
	const uint64_t dfl[WORDS] = { 0 };

	exchange_action(NULL, action);
	if (action[HANDLER] == (uintptr_t)SIG_IGN && info->si_code <= 0)
		return;
	if (action[HANDLER] <= (uintptr_t)SIG_IGN) {
		take_default_action(sig, info, context, again);
		return;
	}
	if (action[FLAGS] & SA_RESETHAND)
		exchange_action(dfl, NULL);
	memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof mask);
	mask |= action[MASK];
	mask &= ~kbi_broadcast_faults();
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, MASK_BYTES);
	((void (*)(int, siginfo_t *, void *))action[HANDLER])(sig, info, context);
	kbi_sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_BYTES);
}

void kbi_intercept_signal_take(int sig, void (*handler)(int, siginfo_t *, void *),
	const void *restorer)
{
	const uint64_t faults = bit_of_signal(SIGSEGV) | bit_of_signal(SIGBUS) |
		bit_of_signal(SIGILL) | bit_of_signal(SIGFPE) | bit_of_signal(SIGTRAP) |
		bit_of_signal(SIGSYS);
	uint64_t ours[WORDS] = { (uintptr_t)handler, SA_SIGINFO | SA_NODEFER | HAS_RESTORER,
		(uintptr_t)restorer, ~faults };

	kbi_sys(SYS_rt_sigaction, sig, NULL, taken.programs, MASK_BYTES);
	taken.sig = sig;
	kbi_broadcast_kept |= bit_of_signal(sig);
	kbi_sys(SYS_rt_sigaction, sig, ours, NULL, MASK_BYTES);
}

void kbi_intercept_signal_fit_others(void)
{
	uint64_t action[WORDS];

	for (int sig = 1; sig <= SIGNALS; sig++)
		if (sig != taken.sig && !kbi_sys(SYS_rt_sigaction, sig, NULL, action, MASK_BYTES) &&
		    action[HANDLER] > (uintptr_t)SIG_IGN) {
			kbi_broadcast_fit(action);
			kbi_sys(SYS_rt_sigaction, sig, action, NULL, MASK_BYTES);
		}
}

void kbi_intercept_signal_is_programs(void)
{
	uint64_t action[WORDS];

	if (!taken.sig)
		return;
	exchange_action(NULL, action);
	kbi_sys(SYS_rt_sigaction, taken.sig, action, NULL, MASK_BYTES);
}

void kbi_intercept_signal_leave(void)
{
	if (!taken.sig)
		return;
	kbi_sys(SYS_rt_sigaction, taken.sig, taken.programs, NULL, MASK_BYTES);
	kbi_broadcast_kept &= ~bit_of_signal(taken.sig);
	taken.sig = 0;
}
