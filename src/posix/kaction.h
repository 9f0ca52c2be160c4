/* posix/kaction.h - signal actions in the kernel's form, past libc.
 * Callers: posix/signal, signal_action, signal_sigcancel, signal_dispatcher, signal_send, also in
 * handlers. No locks. Never switches. */
#ifndef KBI_KACTION_H
#define KBI_KACTION_H

#include "base/base.h"

#include <signal.h>

/* The kernel's struct sigaction. The layout of `rest` differs between machines. */
struct kbi_kaction {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	uint64_t rest[6];
};

/* Bit in `flags`: the first word of `rest` is the address of the trampoline to which handlers
 * return. */
#define KBI_KACTION_RESTORER ((uint64_t)0x04000000)

/* Index in `rest` of the mask of signals that the handler blocks: behind the trampoline's address,
 * on machines that have a trampoline. */
#if defined(__x86_64__) || defined(__aarch64__)
enum { KBI_KACTION_MASK = 1 };
#else
enum { KBI_KACTION_MASK = 0 };
#endif

/* Performs rt_sigaction without libc, which hides the signals that it keeps for itself. Returns 0
 * or -errno. */
long kbi_kaction(int sig, const struct kbi_kaction *new, struct kbi_kaction *old);

/* Tests whether the action of sig is SIG_DFL. */
bool kbi_kaction_is_default(int sig);
/* Tests whether sig has a handler with SA_RESTART, or no handler. */
bool kbi_kaction_restarts(int sig);

static inline bool kbi_kaction_is_handler(const struct kbi_kaction *a)
{
	return (uintptr_t)a->handler > 1; /* neither SIG_DFL nor SIG_IGN */
}

#endif
