/* sync/group.h - a group's account of its tasks: how many have not ended, and the first error.
 * `own` counts the tasks made and ended by the owner, with plain instructions. `others` counts in
 * the same way for all other threads, twice; its lowest bit says that the owner sleeps. own plus
 * half of `others` is the number of tasks that have not ended. Before the owner sleeps it adds own
 * to `others`, so the thread that ends the last task sees that it is the last.
 * Callers: crew, group, loop, future. Takes no lock; never switches except in a task. */
#ifndef KBI_GROUP_H
#define KBI_GROUP_H

#include <kochab/task.h>

#include "core/wait.h"

enum { KBI_GROUP_SLEEPS = 1, KBI_GROUP_TASK = 2 };

static inline a64 *kbi_group_others(kb_group_t *g) { return (a64 *)&g->others; }
static inline a32 *kbi_group_error(kb_group_t *g) { return (a32 *)&g->error; }
static inline a32 *kbi_group_stopped(kb_group_t *g) { return (a32 *)&g->stopped; }

/* Counts a task that self makes, before another thread can see the task. */
static inline void kbi_group_made(kb_group_t *g, const struct kbi_task *self)
{
	if (kbi_likely(g->owner == self))
		g->own++;
	else
		a_add_rlx(kbi_group_others(g), KBI_GROUP_TASK);
}

/* Counts off a task that has ended on self, or could not be made. Unless self is the owner, the
 * group may be gone afterwards. */
static inline void kbi_group_ended(kb_group_t *g, const struct kbi_task *self)
{
	struct kbi_task *owner = g->owner;

	if (kbi_likely(owner == self)) {
		g->own--;
		return;
	}
	/* release: the task's effects; pairs with the acquire in is_group_over and sleep_until_over
	 * (group.c). acquire: the thread that ends the last task wakes the owner on behalf of all. */
	if (a_sub_acqrel(kbi_group_others(g), KBI_GROUP_TASK) == (KBI_GROUP_TASK | KBI_GROUP_SLEEPS))
		kbi_wait_wake_next(owner);
}

/* Notes the error of a task, not 0: the first error is kept, the group stops. */
static inline void kbi_group_failed(kb_group_t *g, int e)
{
	uint32_t none = 0;

	/* relaxed: the end of the task, which follows, is a release */
	a_cas_rlx(kbi_group_error(g), &none, (uint32_t)e);
	a_store_rlx(kbi_group_stopped(g), 1);
}

/* Runs a task of the group on self, unless the group is stopped, and counts it off. */
KBI_SWITCHES static inline void kbi_group_do(kb_group_t *g, struct kbi_task *self,
	int (*fn)(void *), void *arg)
{
	if (kbi_likely(!a_load_rlx(kbi_group_stopped(g)))) {
		int e = fn(arg);

		if (kbi_unlikely(e != 0))
			kbi_group_failed(g, e);
	}
	kbi_group_ended(g, self);
}

#endif
