/* core/ask.c - a VP that has nothing to run, or soon will have nothing, asks another one for some of its work. Contract in
 * ask.h. On the agent's stack, or at a thread's end. */
#include "core/ask.h"

#include "base/option.h"
#include "core/preempt.h"
#include "os/sys.h"

enum {
	ASK_EVERY = 5000, /* ns: between two questions */
	WORTH = 1000,     /* ns: turns that are shorter are not asked for */
};

/* Who has most that could run here, by what they have published; NULL: nobody has. */
static struct kbi_vp *richest(const struct kbi_vp *vp)
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
	/* release: partner is the exchange in kbi_board_scan, in the look that then sees that it is wanted */
	a_store_rel(&w->board.marked, 1);
}

/* The richest, w, is to give some of its work. At first it is told so, which it sees at its next switch. If it has not
 * switched by the next look it gets the tick, once for that thread's turn: the handler gives this VP its share. */
static void ask(struct kbi_vp *w, struct kbi_ask *a, uint64_t turns)
{
	if (!a_load_rlx(&w->wanted)) {
		say_wanted(w);
	} else if (turns == a->turns && turns != a->ticked && kbi_options.tick_ms > 0 && !kbi_options.quantum) {
		a->ticked = turns;
		kbi_preempt_send(w);
	}
}

/* A busy VP looks around after so many switches, which are long if its threads compute. This one has polled for longer
 * than a message takes, and gets nothing: it says so. But threads that end sooner than they could move are kept, if that
 * is known or not. With a quantum the lookout sends the ticks, which knows the calls that they must not end. */
void kbi_ask_for_work(struct kbi_vp *vp, struct kbi_ask *a, uint64_t now)
{
	uint64_t turns, since = now - a->at;
	struct kbi_vp *w;

	if (since < ASK_EVERY || !vp->private_ready || a_load_rlx(&kbi_crowd.fine))
		return;
	w = richest(vp);
	turns = w ? kbi_vp_turns(w) : 0;
	if (w && w == a->rich && (turns - a->turns) * WORTH <= since)
		ask(w, a, turns);
	a->at = now;
	a->rich = w;
	a->turns = turns;
}

/* Where threads compute an answer takes as long as a turn of theirs. So who has been given some by others and begins with
 * the last of them asks already now, if they were no fine ones. */
void kbi_ask_ahead(struct kbi_vp *vp)
{
	uint64_t n = vp->s->taken - vp->fed_before;
	struct kbi_vp *w;

	/* once: they may have made others since */
	if (vp->asked_ahead == vp->s->taken)
		return;
	vp->asked_ahead = vp->s->taken;
	if (!vp->private_ready || a_load_rlx(&kbi_crowd.fine) || kbi_sys_now() - vp->fed_at < n * WORTH + ASK_EVERY)
		return;
	/* so that its load is known */
	if (kbi_vp_exchange(vp, KBI_POLL_SWITCH))
		return;
	w = richest(vp);
	if (w && !a_load_rlx(&w->wanted))
		say_wanted(w);
}
