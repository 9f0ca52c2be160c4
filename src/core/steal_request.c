/* core/steal_request.c - a VP that has nothing to run, or will soon have nothing, asks another VP
 * for some of its work. Contract in steal_request.h. Runs on the agent's stack, or at a thread's
 * end. */
#include "core/steal_request.h"

#include "base/option.h"
#include "core/preempt.h"
#include "os/sys.h"

enum {
	ASK_EVERY = 5000, /* ns between two requests */
	WORTH = 1000,     /* ns: no request for shorter turns */
};

/* Returns the busy VP with the most work that could run here, by the load that it has published;
 * NULL: there is none. */
static struct kbi_vp *find_richest_vp(const struct kbi_vp *vp)
{
	struct kbi_vp *best = NULL;
	uint32_t most = 1;

	for (unsigned i = 1; i < kbi_vp_n; i++) {
		struct kbi_vp *w = kbi_vps[(vp->id + i) % kbi_vp_n];
		uint32_t load = a_load_rlx(&w->s->load);

		if (load > most && a_load_rlx(&w->s->idle) == KBI_IDLE_BUSY) {
			most = load;
			best = w;
		}
	}
	return best;
}

static void say_wanted(struct kbi_vp *w)
{
	a_store_rlx(&w->wanted, 1);
	/* release: partner is the exchange in kbi_board_scan; the look that follows it then sees
	 * `wanted` */
	a_store_rel(&w->board.marked, 1);
}

/* Requests some work of w, the richest VP. First w is told, and sees that at its next switch. If w
 * has not switched by the next look it gets the tick, once in that thread's turn: the handler then
 * gives this VP its share. */
static void request_work(struct kbi_vp *w, struct kbi_steal_request *a, uint64_t turns)
{
	if (!a_load_rlx(&w->wanted)) {
		say_wanted(w);
	} else if (turns == a->turns && turns != a->ticked && kbi_options.tick_ms > 0 &&
	    !kbi_options.quantum) {
		a->ticked = turns;
		kbi_preempt_send(w);
	}
}

/* A busy VP looks around after a number of switches; those are far apart if its threads compute.
 * This VP has polled for longer than a message takes and got nothing, so it makes a request.
 * Threads that end sooner than they could move stay where they are, whether that is known (`fine`)
 * or not (WORTH). With a quantum only sysmon sends ticks, because it knows the calls that a
 * tick must not end. */
void kbi_steal_request_send(struct kbi_vp *vp, struct kbi_steal_request *a, uint64_t now)
{
	uint64_t turns, since = now - a->at;
	struct kbi_vp *w;

	if (since < ASK_EVERY || !vp->private_ready || a_load_rlx(&kbi_idle_stats.fine_grained))
		return;
	w = find_richest_vp(vp);
	turns = w ? kbi_vp_turns(w) : 0;
	if (w && w == a->rich && (turns - a->turns) * WORTH <= since)
		request_work(w, a, turns);
	a->at = now;
	a->rich = w;
	a->turns = turns;
}

/* Where threads compute, the answer to a request takes as long as a turn. So a VP that was given
 * tasks, and begins with the last of them, makes its request already now, unless the tasks were
 * fine. */
void kbi_steal_request_ahead(struct kbi_vp *vp)
{
	uint64_t n = vp->s->taken - vp->fed_before;
	struct kbi_vp *w;

	/* only once for each gift: its threads may have made more since */
	if (vp->asked_ahead == vp->s->taken)
		return;
	vp->asked_ahead = vp->s->taken;
	if (!vp->private_ready || a_load_rlx(&kbi_idle_stats.fine_grained) ||
	    kbi_sys_now() - vp->fed_at < n * WORTH + ASK_EVERY)
		return;
	/* publishes vp's load */
	if (kbi_vp_exchange(vp, KBI_POLL_SWITCH))
		return;
	w = find_richest_vp(vp);
	if (w && !a_load_rlx(&w->wanted))
		say_wanted(w);
}
