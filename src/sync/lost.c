/* sync/lost.c - who waits for what a lost thread held. Contract in lost.h.
 * Only where threads can be lost (kbi_contain_on). Runs on waiters' stacks, and in the place of a lost thread. Never
 * switches. */
#include "sync/lost.h"

#include "base/option.h"
#include "core/wait.h"
#include "os/sys.h"

enum { KIND = 3 /* its bits in `awaits` */ };
_Static_assert(KBI_LOST_KINDS <= KIND + 1, "they fit in");

static aptr hows[KBI_LOST_KINDS]; /* const struct kbi_lost_how *; NULL: nothing of the kind was ever waited for */
static a32 looking;               /* lost threads that look who waits: what they look at must stay */

struct kb_thread *kbi_lost_at(uint32_t index)
{
	struct kb_thread *t = index < kbi_descriptor_limit() ? kbi_descriptor_at(index) : NULL;

	return t && t->lost ? t : NULL;
}

void kbi_lost_complain(const char *what, const void *object, const struct kb_thread *t)
{
	if (kbi_options.on_crash == KBI_OPT_ON_CRASH_ABORT)
		kbi_sys_fatal("the %s at %p is held by thread #%u, which was lost (option on_crash)", what,
			      kbi_sys_shown(object), t->task.index);
}

/* ---- a lost thread ------------------------------------------------------------------------------ */

static const struct kbi_lost_how *how_of(unsigned kind)
{
	return a_load_acq(&hows[kind]); /* partner: kbi_lost_know */
}

static void tell_waiter(const struct kb_thread *waiter, const struct kb_thread *t)
{
	uintptr_t a = (uintptr_t)*(struct kbi_cell *const volatile *)&waiter->task.awaits;
	enum kbi_task_kind k = kbi_state_kind(a_load_rlx(&waiter->task.state));
	const struct kbi_lost_how *how = a & KIND ? how_of(a & KIND) : NULL;

	if (how && k != KBI_TASK_FREE && k != KBI_TASK_DONE)
		how->wanted((void *)(a & ~(uintptr_t)KIND), t);
}

/* In its place. The caller is not preempted: waiters are kept from going on meanwhile. */
static void give_up(struct kb_thread *t)
{
	struct kbi_task *self = &t->task;

	kbi_np_enter(self);
	for (unsigned kind = 1; kind < KBI_LOST_KINDS; kind++)
		if (how_of(kind) && how_of(kind)->held)
			how_of(kind)->held(t);
	a_add_rlx(&looking, 1);
	a_fence_sc(); /* partners: who waits, after kbi_lost_say; kbi_lost_say_no_more */
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++)
		tell_waiter(kbi_descriptor_at(i), t);
	a_sub_acqrel(&looking, 1); /* partner: kbi_lost_say_no_more */
	kbi_np_leave(self);
}

/* ---- who waits ----------------------------------------------------------------------------------- */

void kbi_lost_know(enum kbi_lost_kind kind, const struct kbi_lost_how *how)
{
	if (kbi_likely(a_load_rlx(&hows[kind]) == how))
		return;
	a_store_rel(&hows[kind], (void *)(uintptr_t)how); /* partner: how_of */
	a_store_rlx(&kbi_contain_gives_up, (void *)(uintptr_t)give_up);
}

void kbi_lost_say(struct kbi_task *t, void *object, enum kbi_lost_kind kind, const struct kbi_lost_how *how)
{
	kbi_lost_know(kind, how);
	t->awaits = (struct kbi_cell *)((uintptr_t)object | kind);
}

/* What it has waited for may be gone when it goes on. Either it is seen here that somebody looks, or there that it does not
 * wait. */
void kbi_lost_say_no_more(struct kbi_task *self)
{
	if (!self->awaits)
		return;
	self->awaits = NULL;
	a_fence_sc(); /* partner: give_up */
	for (unsigned n = 0; a_load_acq(&looking); n++) /* partner: the release there */
		kbi_sys_yield_to_holder(n);
}
