/* posix/caller.h - may the threads that a module creates be lightweight? Not if it waits in the kernel by instructions of
 * its own (libgomp's barriers, Go's scheduler): where many such threads share a virtual processor, who is waited for
 * would wait behind who waits. Their threads are kernel threads, and one line says so.
 * Caller: posix/thread, with its caller's return address. Does not switch. */
#ifndef KBI_CALLER_H
#define KBI_CALLER_H

#include "base/atom.h"
#include "base/base.h"

struct kbi_caller {
	uintptr_t low, size;
	struct kbi_caller *next;
	bool kernel;
};

extern KBI_HIDDEN aptr kbi_caller_last; /* struct kbi_caller: the one asked about last */

bool kbi_caller_judge(const void *at);

static inline bool kbi_caller_wants_kernel(const void *at)
{
	/* acquire: partner is the release in kbi_caller_judge */
	const struct kbi_caller *c = a_load_acq(&kbi_caller_last);

	if (kbi_likely(c && (uintptr_t)at - c->low < c->size))
		return c->kernel;
	return kbi_caller_judge(at);
}

#endif
