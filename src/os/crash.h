/* os/crash.h - where a thread crashed: its frames, and whether it can be left there for ever.
 * Callers: core/contain. Runs in signal handlers, but for learn. */
#ifndef KBI_CRASH_H
#define KBI_CRASH_H

#include "base/base.h"

struct kbi_crash_walk {
	void **frame;      /* return addresses are written here, innermost first; */
	unsigned most, n;  /* room for them, and how many */
};

/* Once, before handlers run: where libc's functions lie. False: this program or machine does not tell. */
bool kbi_crash_learn(void);
/* Why it is left: it has faulted; it has sent a signal to itself (abort); it is to be left wherever it is. */
enum kbi_crash_kind { KBI_CRASH_FAULT, KBI_CRASH_SENT, KBI_CRASH_ANYWHERE };
/* Follows the frames of the interrupted code. NULL: the thread can be left there; else why not. *guard is set meanwhile:
 * a fault in here, for the stack may be destroyed, is ended by kbi_crash_give_up(*guard), and what has been seen until
 * then counts. */
const char *kbi_crash_look(const void *context, enum kbi_crash_kind kind, struct kbi_crash_walk *w, void **guard);
KBI_NORETURN void kbi_crash_give_up(void *guard);

#endif
