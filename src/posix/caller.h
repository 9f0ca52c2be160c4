/* posix/caller.h - may the threads that a module creates be lightweight? If it waits in the kernel by instructions of its
 * own, threads that share a virtual processor with a waiting thread would wait, too. Where these are futex calls and
 * nothing else (libgomp's barriers) they are replaced, while nobody can be in the midst of them: before there is a
 * second kernel thread, or while the module is loaded. Where they are not (Go's scheduler) its threads are kernel
 * threads, and a line says so.
 * Callers: posix/thread and posix/key, with their callers' return addresses. Does not switch. */
#ifndef KBI_CALLER_H
#define KBI_CALLER_H

#include "base/atom.h"
#include "base/base.h"
#include "os/ownsite.h"

struct kbi_caller {
	uintptr_t low, size;
	struct kbi_caller *next;
	bool kernel;
};

extern KBI_HIDDEN aptr kbi_caller_last; /* struct kbi_caller: the one asked about last */

/* The runtime is about to start. futex: the code for a call, also of modules that are loaded later. */
void kbi_caller_expect(kbi_libsite_call *futex);
/* It calls while it is loaded, perhaps. */
void kbi_caller_loads(const void *at);
bool kbi_caller_judge(const void *at, kbi_libsite_call *futex);

static inline bool kbi_caller_wants_kernel(const void *at, kbi_libsite_call *futex)
{
	/* acquire: partner is the release in kbi_caller_judge */
	const struct kbi_caller *c = a_load_acq(&kbi_caller_last);

	if (kbi_likely(c && (uintptr_t)at - c->low < c->size))
		return c->kernel;
	return kbi_caller_judge(at, futex);
}

#endif
