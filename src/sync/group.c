/* sync/group.c - groups of tasks. Contract in kochab/task.h, the counts in group.h. A waiting owner
 * runs the tasks of its group that it made last, and sleeps when other threads have them.
 * Callers: loop, all rooms above. Calls crew. Only kb_group_wait may switch. */
#include "sync/group.h"

#include <errno.h>

#include "core/boot.h"
#include "sync/crew.h"
#include "sync/waitq.h"

static KBI_NOINLINE int init_slow(kb_group_t *g)
{
	int e = kbi_boot();

	if (!e)
		*g = (kb_group_t){ .owner = kbi_self() };
	return e;
}

int kb_group_init(kb_group_t *g)
{
	struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(!self))
		return init_slow(g);
	g->owner = self;
	g->own = 0;
	a_store_rlx(kbi_group_others(g), 0);
	a_store_rlx(kbi_group_error(g), 0);
	a_store_rlx(kbi_group_stopped(g), 0);
	return 0;
}

static KBI_NOINLINE int run_slow(kb_group_t *g, struct kbi_task *self, int (*fn)(void *), void *arg)
{
	struct kbi_work w = { fn, arg, g };
	int e = kbi_crew_put_slow(&w);

	if (e)
		kbi_group_ended(g, self);
	return e;
}

int kb_group_run(kb_group_t *g, int (*fn)(void *), void *arg)
{
	struct kbi_task *self = kbi_self_raw();

	if (kbi_unlikely(!fn))
		return EINVAL;
	if (kbi_unlikely(!self))
		self = kbi_self(); /* for a group that another thread has begun */
	kbi_group_made(g, self);
	if (kbi_likely(kbi_crew_put_here(self, fn, arg, g)))
		return 0;
	return run_slow(g, self, fn, arg);
}

/* Returns whether all tasks have ended. */
static inline bool is_group_over(kb_group_t *g)
{
	/* acquire: pairs with the release in kbi_group_ended */
	return g->own + ((int64_t)a_load_acq(kbi_group_others(g)) >> 1) == 0;
}

/* Sleeps until the tasks that other threads run have ended. */
static KBI_NOINLINE void sleep_until_over(kb_group_t *g, struct kbi_task *self)
{
	a64 *others = kbi_group_others(g);
	int64_t own = g->own;

	g->own = 0;
	/* acquire: pairs with the release in kbi_group_ended. release: the group's memory, for the
	 * thread that ends the last task; pairs with the acquire there. */
	a_add_acqrel(others, (uint64_t)own * KBI_GROUP_TASK + KBI_GROUP_SLEEPS);
	/* acquire: pairs with the release in kbi_group_ended */
	while (a_load_acq(others) != KBI_GROUP_SLEEPS)
		kbi_waitq_sleep(self, kbi_waitq_until_handling(KBI_FOREVER));
	a_store_rlx(others, 0);
}

static KBI_NOINLINE bool take_shared(kb_group_t *g, struct kbi_work *w)
{
	return kbi_crew_take_shared(g, w);
}

KBI_SWITCHER int kb_group_wait(kb_group_t *g)
{
	struct kbi_task *self = kbi_self();
	struct kbi_work w;
	int e;

	if (kbi_unlikely(g->owner != self))
		return EPERM;
	while (!is_group_over(g)) {
		if (kbi_likely(kbi_crew_take_newest(self, g, &w)) || take_shared(g, &w))
			kbi_group_do(g, self, w.fn, w.arg);
		else
			sleep_until_over(g, self);
	}
	e = (int)a_load_rlx(kbi_group_error(g));
	if (kbi_unlikely(a_load_rlx(kbi_group_stopped(g)))) {
		e = e ? e : ECANCELED;
		a_store_rlx(kbi_group_error(g), 0);
		a_store_rlx(kbi_group_stopped(g), 0);
	}
	g->own = 0;
	a_store_rlx(kbi_group_others(g), 0);
	return e;
}

void kb_group_cancel(kb_group_t *g)
{
	a_store_rlx(kbi_group_stopped(g), 1);
}

int kb_group_cancelled(const kb_group_t *g)
{
	return (int)a_load_rlx((const a32 *)&g->stopped);
}
