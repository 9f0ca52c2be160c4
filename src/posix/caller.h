/* posix/caller.h - whether the threads that a module creates may be lightweight. If the module
 * waits in the kernel by instructions of its own, a waiting thread would block all threads on its
 * virtual processor. If those are only futex calls (libgomp's barriers) they are replaced while no
 * thread can be inside them: before there is a second kernel thread, or while the module is loaded.
 * If they are not (Go's scheduler) the module's threads are kernel threads, and a message says so.
 * Callers: posix/thread and posix/key, with their callers' return addresses. Never switches. */
#ifndef KBI_CALLER_H
#define KBI_CALLER_H

#include "base/atom.h"
#include "base/base.h"
#include "os/intercept_module.h"

struct kbi_caller {
	uintptr_t low, size;
	struct kbi_caller *next;
	bool kernel;
};

/* struct kbi_caller: the module that was asked about last */
extern KBI_HIDDEN aptr kbi_caller_last;

/* Call when the runtime is about to start. futex: the function that replaces a futex call, also in
 * modules loaded later. */
void kbi_caller_expect(kbi_intercept_call *futex);
/* Call when the module at `at` may be in its constructor. */
void kbi_caller_loads(const void *at);
bool kbi_caller_judge(const void *at, kbi_intercept_call *futex);

static inline bool kbi_caller_wants_kernel(const void *at, kbi_intercept_call *futex)
{
	/* acquire: pairs with the release in kbi_caller_judge */
	const struct kbi_caller *c = a_load_acq(&kbi_caller_last);

	if (kbi_likely(c && (uintptr_t)at - c->low < c->size))
		return c->kernel;
	return kbi_caller_judge(at, futex);
}

#endif
