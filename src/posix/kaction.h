/* posix/kaction.h - actions of signals, as the kernel has them and as the program has set them.
 * Callers: this room. */
#ifndef KBI_KACTION_H
#define KBI_KACTION_H

#include "base/base.h"

#include <signal.h>

/* The kernel's struct sigaction; the rest differs from machine to machine. */
struct kbi_kaction {
	void (*handler)(int, siginfo_t *, void *);
	uint64_t flags;
	uint64_t rest[6];
};

/* In flags: the trampoline's address is the first of `rest`. Handlers return to there. */
#define KBI_KACTION_RESTORER ((uint64_t)0x04000000)

/* Where in `rest` the kernel finds which signals the handler blocks: behind the trampoline's address, where it has one. */
#if defined(__x86_64__) || defined(__aarch64__)
enum { KBI_KACTION_MASK = 1 };
#else
enum { KBI_KACTION_MASK = 0 };
#endif

/* rt_sigaction past libc, which hides the signals it keeps for itself. */
long kbi_kaction(int sig, const struct kbi_kaction *new, struct kbi_kaction *old);

/* SIG_DFL is what it has. */
bool kbi_kaction_is_default(int sig);
/* A handler that asks for restart, or no handler. */
bool kbi_kaction_restarts(int sig);

static inline bool kbi_kaction_is_handler(const struct kbi_kaction *a)
{
	return (uintptr_t)a->handler > 1; /* SIG_DFL, SIG_IGN */
}

#endif
