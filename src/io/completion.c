/* io/completion.c - sources that the program polls itself, called by the agents.
 * Contract in kochab/io.h.
 * Callers: programs; io/engine calls the sources, under their `busy`. kb_io_complete and the
 * agents' part never switch; waiting, adding and ending a source may.
 *
 * A completion's state is NULL, the waiting thread, or DONE. The waiting thread stores itself and,
 * giving up, NULL again; the completing thread stores DONE by an exchange, the last touch, and
 * reads from it the thread to wake. */
#include <errno.h>
#include <kochab/io.h>

#include "core/boot.h"
#include "core/yield.h"
#include "io/engine.h"
#include "io/patience.h"
#include "io/ready.h"
#include "sched/source.h"

enum { SOURCES = 64 };
#define DONE ((void *)1)

struct completion {
	aptr state;
	int64_t result;
};

_Static_assert(sizeof(struct completion) <= sizeof(kb_io_completion_t),
	"kb_io_completion_t is too small");

static struct source {
	a32 busy;
	a32 used; /* under busy; also read without it */
	void (*poll)(kb_io_agent_t *agent, void *arg);
	void *arg;
} source[SOURCES];

/* ---- sources --------------------------------------------------------------------------------- */

static bool enter_poll_source(struct source *s)
{
	/* acquire: pairs with the release in leave_poll_source */
	return !a_load_rlx(&s->busy) && !a_xchg_acq(&s->busy, 1);
}

static void leave_poll_source(struct source *s)
{
	a_store_rel(&s->busy, 0);
}

static void poll_sources(struct kbi_vp *me)
{
	for (struct source *s = source; s < source + SOURCES; s++) {
		if (!a_load_rlx(&s->used) || !enter_poll_source(s))
			continue;
		if (a_load_rlx(&s->used))
			s->poll((kb_io_agent_t *)me, s->arg);
		leave_poll_source(s);
	}
}

/* Enters a source from a thread that is not an agent: np > 0, so that no tick takes the thread away
 * while agents would have to wait. */
static void enter_patiently(struct source *s, struct kbi_task *self)
{
	for (;;) {
		kbi_np_enter(self);
		if (enter_poll_source(s))
			return;
		kbi_np_leave(self);
		kbi_yield_now();
	}
}

int kb_io_poll_source(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg)
{
	struct kbi_task *self;
	int e = kbi_boot();

	if (!e)
		e = kbi_ready_start();
	if (e || !poll)
		return e ? e : EINVAL;
	self = kbi_self();
	for (struct source *s = source; s < source + SOURCES; s++) {
		bool taken;

		if (a_load_rlx(&s->used))
			continue;
		enter_patiently(s, self);
		taken = !a_load_rlx(&s->used);
		if (taken) {
			s->poll = poll;
			s->arg = arg;
			a_store_rlx(&s->used, 1);
		}
		leave_poll_source(s);
		kbi_np_leave(self);
		if (taken) {
			kbi_engine_poll_also(poll_sources);
			return 0;
		}
	}
	return ENOSPC;
}

int kb_io_poll_source_end(void (*poll)(kb_io_agent_t *agent, void *arg), void *arg)
{
	struct kbi_task *self = kbi_self();

	for (struct source *s = source; s < source + SOURCES; s++) {
		bool found;

		if (!a_load_rlx(&s->used))
			continue;
		enter_patiently(s, self);
		found = a_load_rlx(&s->used) && s->poll == poll && s->arg == arg;
		if (found)
			a_store_rlx(&s->used, 0);
		leave_poll_source(s);
		kbi_np_leave(self);
		if (found)
			return 0;
	}
	return ENOENT;
}

/* ---- completions ----------------------------------------------------------------------------- */

void kb_io_complete(kb_io_agent_t *agent, kb_io_completion_t *completion, int64_t result)
{
	struct completion *c = (struct completion *)completion;
	struct kbi_task *t;

	c->result = result;
	/* release: pairs with the acquire in is_done and at the end of kb_io_await; acquire: pairs with
	 * the release at its begin */
	t = a_xchg_acqrel(&c->state, DONE);
	if (!t || t == DONE)
		return;
	if (agent)
		kbi_domain_wake((struct kbi_vp *)agent, t, false);
	else
		kbi_wait_wake(t);
}

static bool is_done(struct completion *c)
{
	return a_load_acq(&c->state) == DONE; /* acquire: pairs with the release in kb_io_complete */
}

static int sleep_until_done(struct completion *c, struct kbi_task *self, struct kbi_until until)
{
	int e = 0;

	while (!is_done(c) && !e) {
		e = kbi_waitq_sleep(self, until);
		if (e == EAGAIN)
			e = 0;
	}
	return e;
}

static int wait_for_completion(struct completion *c, struct kbi_task *self, uint64_t deadline)
{
	int e;

	a_add_rlx(&kbi_source.polled, 1);
	a_add_rlx(&kbi_source.waiting, 1);
	if (!self->vp) {
		/* sc: pairs with the fence of a VP that goes to sleep in
		 * core/agent.c. A VP must poll for us */
		a_fence_sc();
		kbi_vp_rouse(kbi_vps[0]);
	}
	e = sleep_until_done(c, self, kbi_patience(deadline));
	a_sub_rlx(&kbi_source.waiting, 1);
	a_sub_rlx(&kbi_source.polled, 1);
	return e;
}

int kb_io_await(kb_io_completion_t *completion, int64_t *result, uint64_t deadline)
{
	struct completion *c = (struct completion *)completion;
	struct kbi_task *self = kbi_self();
	void *state = NULL;
	int e = kbi_boot();

	if (!e)
		e = kbi_ready_start();
	if (e)
		return e;
	/* release: pairs with the acquire in kb_io_complete */
	if (a_cas_acqrel(&c->state, &state, (void *)self)) {
		e = wait_for_completion(c, self, deadline);
		state = self;
		if (e && a_cas_acqrel(&c->state, &state, NULL))
			return e;
	}
	if (result)
		*result = c->result;
	a_store_rlx(&c->state, NULL);
	return 0;
}
