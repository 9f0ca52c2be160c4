/* libc/crash.h - the place where a thread crashed: its frames, and whether the thread can be left
 * there for ever.
 * Callers: core/contain. Runs in signal handlers, except for kbi_crash_learn. */
#ifndef KBI_CRASH_H
#define KBI_CRASH_H

#include "base/base.h"

struct kbi_crash_walk {
	void **frame;      /* return addresses are written here, innermost first */
	unsigned most, n;  /* room for addresses, and their number */
};

/* Learns where libc's functions lie. Call once, before handlers run. Returns false if this program
 * or machine does not tell. */
bool kbi_crash_learn(void);
/* Why the thread is left: it has faulted; it has sent itself a signal (abort); it is to be left
 * wherever it is. */
enum kbi_crash_kind { KBI_CRASH_FAULT, KBI_CRASH_SENT, KBI_CRASH_ANYWHERE };
/* Follows the frames of the interrupted code. Returns NULL if the thread can be left there, else
 * the reason why not. *guard is set meanwhile: a fault in this function, for the stack may be
 * destroyed, must be ended by kbi_crash_give_up(*guard); the frames found until then count. */
const char *kbi_crash_look(const void *context, enum kbi_crash_kind kind, struct kbi_crash_walk *w,
	void **guard);
KBI_NORETURN void kbi_crash_give_up(void *guard);

#endif
