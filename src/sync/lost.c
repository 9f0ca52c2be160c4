/* sync/lost.c - waiters for objects that a lost thread held. Contract in lost.h.
 * Callers: mutex, rwlock; core/contain through kbi_contain_gives_up. Used only where threads
 * can be lost (kbi_contain_on). Runs on waiters' stacks, and in the place of a lost thread.
 * Takes no lock. Never switches. */
#include "sync/lost.h"

#include "base/option.h"
#include "core/wait.h"
#include "os/sys.h"

enum { KIND = 3 /* the bits of the kind in `awaits` */ };
_Static_assert(KBI_LOST_KINDS <= KIND + 1, "they fit in");

/* const struct kbi_lost_how *; NULL: no thread has waited for an object of the kind */
static aptr hows[KBI_LOST_KINDS];
/* number of lost threads that look for waiters: the objects that they look at must stay */
static a32 looking;

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

/* ---- a lost thread --------------------------------------------------------------------------- */

static const struct kbi_lost_how *how_of_lost_kind(unsigned kind)
{
	return a_load_acq(&hows[kind]); /* acquire: pairs with the release in kbi_lost_know */
}

static void tell_waiter(const struct kb_thread *waiter, const struct kb_thread *t)
{
	uintptr_t a = (uintptr_t)*(struct kbi_cell *const volatile *)&waiter->task.awaits;
	enum kbi_task_kind k = kbi_state_kind(a_load_rlx(&waiter->task.state));
	const struct kbi_lost_how *how = a & KIND ? how_of_lost_kind(a & KIND) : NULL;

	if (how && k != KBI_TASK_FREE && k != KBI_TASK_DONE)
		how->wanted((void *)(a & ~(uintptr_t)KIND), t);
}

/* Gives up the objects that t holds. Runs in the place of t. The caller is not preempted: waiters
 * cannot go on meanwhile. */
static void give_up_held_objects(struct kb_thread *t)
{
	struct kbi_task *self = &t->task;

	kbi_np_enter(self);
	for (unsigned kind = 1; kind < KBI_LOST_KINDS; kind++)
		if (how_of_lost_kind(kind) && how_of_lost_kind(kind)->held)
			how_of_lost_kind(kind)->held(t);
	a_add_rlx(&looking, 1);
	/* sc: pairs with the fence of a waiter after kbi_lost_say, and with kbi_lost_say_no_more */
	a_fence_sc();
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++)
		tell_waiter(kbi_descriptor_at(i), t);
	a_sub_acqrel(&looking, 1); /* release: pairs with the acquire in kbi_lost_say_no_more */
	kbi_np_leave(self);
}

/* ---- waiters --------------------------------------------------------------------------------- */

void kbi_lost_know(enum kbi_lost_kind kind, const struct kbi_lost_how *how)
{
	if (kbi_likely(a_load_rlx(&hows[kind]) == how))
		return;
	/* release: pairs with the acquire in how_of_lost_kind */
	a_store_rel(&hows[kind], (void *)(uintptr_t)how);
	a_store_rlx(&kbi_contain_gives_up, (void *)(uintptr_t)give_up_held_objects);
}

void kbi_lost_say(struct kbi_task *t, void *object, enum kbi_lost_kind kind,
	const struct kbi_lost_how *how)
{
	kbi_lost_know(kind, how);
	t->awaits = (struct kbi_cell *)((uintptr_t)object | kind);
}

/* The object may be gone when its waiter goes on. Either this function sees a lost thread looking,
 * or the lost thread sees that the caller does not wait. */
void kbi_lost_say_no_more(struct kbi_task *self)
{
	if (!self->awaits)
		return;
	self->awaits = NULL;
	a_fence_sc(); /* sc: pairs with the fence in give_up_held_objects */
	/* acquire: pairs with the release in give_up_held_objects */
	for (unsigned n = 0; a_load_acq(&looking); n++)
		kbi_sys_yield_to_holder(n);
}
