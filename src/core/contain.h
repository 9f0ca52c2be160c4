/* core/contain.h - a thread that crashes is lost, and the program goes on: its joiner is told EOWNERDEAD, what it held is
 * given back. By a fault of its own, or because the process that ran it was killed (core/revive). What is sound, and what
 * ends the program: doc/containment.md.
 * Callers: boot. Calls thread, handoff, preempt. */
#ifndef KBI_CONTAIN_H
#define KBI_CONTAIN_H

#include "core/descriptor.h"

/* Handlers for faults, if the options say so. Once, at start. */
void kbi_contain_setup(void);

/* Can a thread be lost? Constant once threads run. */
extern KBI_HIDDEN bool kbi_contain_on;

/* A thread waits for an object whose holder is known by name: in its `awaits`, where no cell has such an address. When some
 * thread is lost all those are woken, to look whether it was that one. A full fence follows before they look first. */
static inline void kbi_contain_wants(struct kbi_task *self, const void *object)
{
	self->awaits = (struct kbi_cell *)((uintptr_t)object | 1);
}

static inline void *kbi_contain_wanted(const struct kbi_task *t)
{
	uintptr_t a = (uintptr_t)t->awaits;

	return a & 1 ? (void *)(a & ~(uintptr_t)1) : NULL;
}

/* A thread's name on an object, and the thread again; NULL: nobody's. */
static inline uint32_t kbi_contain_name(const struct kbi_task *t)
{
	return (uint32_t)(uintptr_t)t;
}

struct kb_thread *kbi_contain_named(uint32_t name);

#endif
