/* io/talk.c - the steps of a thread that waits for an answer, before it sleeps, and its
 * knowledge of its partner.
 * Contract in talk.h.
 * Callers: ready, call, posix. Runs on the waiting thread, which may switch. */
#include "io/talk.h"

#include "core/thread.h"
#include "core/wait.h"
#include "core/yield.h"
#include "io/engine.h"
#include "io/hold.h"
#include "sched/source.h"

/* Returns whether no other thread is ready; a guess, since the caller may be moved at any time. */
static bool is_alone(const struct kbi_task *self)
{
	const struct kbi_vp *vp = self->vp;

	return vp->plain && !vp->first && !kbi_vp_backlog(vp);
}

void kbi_talk_ask(struct kbi_task *self)
{
	kbi_np_enter(self);
	if (self->vp && kbi_source_due())
		kbi_source_poll(self->vp);
	kbi_np_leave(self);
}

/* Threads that talk to each other would get into step, each asleep whenever its partner has its
 * turn. So the kernel is asked first, and the partner is ready when the answers come. */
bool kbi_talk_others_run(struct kbi_task *self, bool asks)
{
	if (asks || is_alone(self))
		kbi_talk_ask(self);
	if (is_alone(self))
		return false;
	kbi_yield_now();
	return true;
}

bool kbi_talk_begin(const struct kbi_hold *h)
{
	enum { ASK = 8 };
	struct kbi_task *self = kbi_self();
	struct kbi_slot *s = kbi_slot_find(kbi_hold_fd(h));
	unsigned n = 0;

	if (kbi_unlikely(!self->vp) || kbi_engine_forked())
		return false;
	if (s && a_load_rlx(&s->known)) {
		n = a_load_rlx(&s->waits) + 1u;
		a_store_rlx(&s->waits, (uint8_t)(n % ASK));
	}
	return kbi_talk_others_run(self, n == ASK);
}

uint32_t kbi_talk_ticks(void)
{
	const struct kbi_task *self = kbi_self_raw();
	const struct kbi_vp *vp = self ? self->vp : NULL;

	return vp ? a_load_rlx(&vp->heard) : 0;
}

void kbi_talk_spared(const struct kbi_hold *h)
{
	enum { ENOUGH = 64 };
	int fd = kbi_hold_fd(h);
	struct kbi_slot *s = kbi_slot_find(fd);
	struct kbi_task *self;
	unsigned n;

	if (!s || kbi_likely(!a_load_rlx(&s->known)))
		return;
	n = a_load_rlx(&s->spared) + 1u;
	a_store_rlx(&s->spared, (uint8_t)n);
	if (kbi_likely(n < ENOUGH) || kbi_engine_forked())
		return;
	self = kbi_self();
	kbi_np_enter(self);
	kbi_slot_lock(s);
	a_store_rlx(&s->spared, 0);
	if (!a_load_rlx(&s->first) && a_load_rlx(&s->known) && kbi_hold_fd(h) == fd)
		kbi_engine_disarm(s, fd);
	kbi_slot_unlock(s);
	kbi_np_leave(self);
}

