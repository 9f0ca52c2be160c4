/* posix/creator_module.h - whether the threads that a module creates may be lightweight. If the
 * module waits in the kernel by instructions of its own, a waiting thread would block all threads
 * on its virtual processor. If those are only futex calls (libgomp's barriers) they are replaced
 * while no thread can be inside them: before there is a second kernel thread, or while the module
 * is loaded. If they are not (Go's scheduler) the module's threads are kernel threads, and a
 * message says so.
 * Callers: posix/thread and posix/key, with their callers' return addresses. Never switches. */
#ifndef KBI_CREATOR_MODULE_H
#define KBI_CREATOR_MODULE_H

#include "base/atom.h"
#include "base/base.h"
#include "libc/intercept_module.h"

struct kbi_creator_module {
	uintptr_t low, size;
	struct kbi_creator_module *next;
	bool kernel;
};

/* struct kbi_creator_module: the module that was asked about last */
extern KBI_HIDDEN aptr kbi_creator_module_last;

/* Call when the runtime is about to start. futex: the function that replaces a futex call, also in
 * modules loaded later. */
void kbi_creator_module_expect(kbi_intercept_call *futex);
/* Call when the module at `at` may be in its constructor. */
void kbi_creator_module_loads(const void *at);
bool kbi_creator_module_judge(const void *at, kbi_intercept_call *futex);

static inline bool kbi_creator_module_wants_kernel(const void *at, kbi_intercept_call *futex)
{
	/* acquire: pairs with the release in kbi_creator_module_judge */
	const struct kbi_creator_module *c = a_load_acq(&kbi_creator_module_last);

	if (kbi_likely(c && (uintptr_t)at - c->low < c->size))
		return c->kernel;
	return kbi_creator_module_judge(at, futex);
}

#endif
