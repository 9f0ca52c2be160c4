/* core/vp.c - the ready queue of a VP and the exchange between VPs. Contract in vp.h. Runs on
 * threads' stacks and the agent's, inside np brackets unless vp.h says otherwise; no locks;
 * never switches. */
#include "core/vp.h"

#include "os/sys.h"
#include "sched/source.h"

struct kbi_vp **kbi_vps;
unsigned kbi_vp_n;
struct kbi_idle_stats kbi_idle_stats;

/* Pushes after which a sleeping VP is woken for two tasks or more, if waking it has gained
 * nothing so far. */
enum { SHARE_SKIP_MAX = 4096 };
/* Tasks that are pushed in a row until they are shared again. */
enum { BURST_LEAST = 8 };
/* SAMPLE: tasks that idle VPs get from a VP with fine tasks, whose turns take SHORT ns or less.
 * Such a sample wakes a VP and ends the time that this VP is alone (core/single_threaded), which
 * costs as much as a thousand fine tasks. So the time between two samples grows, too: with the
 * square of kbi_idle_stats.fine_grained, so that a single misjudgement is cheap: 0.3 us for 64, 5
 * ms for 8,128. If turns have become longer, a sample is due after SAMPLE_NS. */
enum { SAMPLE = 16, SHORT = 400, FINE_PART = 13, SAMPLE_NS = 400 * 1000 };

/* Takes the place of idle_count if idle VPs must be told of each ready task. */
static const a32 always = { 1 };

void kbi_vp_init(struct kbi_vp *vp, unsigned id, struct kbi_sched_vp *s,
	const struct kbi_sched *sched)
{
	vp->id = id;
	vp->waiting_here = KBI_STATE(KBI_TASK_WAITING, id);
	vp->ready_here = KBI_STATE(KBI_TASK_READY, id);
	vp->running_here = KBI_STATE(KBI_TASK_RUNNING, id);
	vp->sched = sched;
	vp->poll_every = sched->poll_every;
	a_store_rlx(&vp->countdown, vp->poll_every);
	vp->s = s;
	vp->plain = !sched->push && !sched->pop;
	vp->private_ready = vp->plain && sched->private_ready;
	vp->idle_count = &s->all[0].idle_count;
	vp->told = vp->plain ? vp->idle_count : &always;
	a_store_rlx(&vp->in_burst, 1);
	a_store_rlx(&vp->next_deadline, UINT64_MAX);
	/* no turn is noted: the first turn is not of a thread that was switched away */
	a_store_rlx(&vp->turn.number, UINT64_MAX);
}

/* ---- ready queue ----------------------------------------------------------------------------- */

void kbi_vp_enqueue_elsewhere(struct kbi_vp *vp, struct kbi_task *t, bool front)
{
	a_store_rlx(&t->state, vp->ready_here);
	vp->sched->push(vp->s, t, front);
}

struct kbi_task *kbi_vp_pop_elsewhere(struct kbi_vp *vp)
{
	return vp->sched->pop(vp->s);
}

/* Begins a burst. Some of n tasks have just been given to a VP that was idle. That VP is busy
 * now, perhaps with one task, while this VP may be about to push many more: each push of the
 * burst looks at their number. */
static void begin_burst(struct kbi_vp *vp, unsigned n)
{
	vp->burst_last = n;
	vp->burst_next = n * 2 + BURST_LEAST;
	vp->told = vp->idle_count = &vp->in_burst;
}

/* Goes on with a burst, at a push while no VP is idle. The burst ends if no more tasks are ready
 * than at the last push, or if tasks are fine. */
static void continue_burst(struct kbi_vp *vp, unsigned n)
{
	if (n <= vp->burst_last || a_load_rlx(&kbi_idle_stats.fine_grained)) {
		vp->told = vp->idle_count = &kbi_vps[0]->s->idle_count;
		return;
	}
	vp->burst_last = n;
	if (n < vp->burst_next)
		return;
	kbi_vp_exchange(vp, KBI_POLL_BURST);
	begin_burst(vp, vp->s->pq.n);
}

static void share_now(struct kbi_vp *vp)
{
	uint64_t given = vp->s->given;

	kbi_vp_exchange(vp, KBI_POLL_PUSH);
	if (vp->s->given != given && vp->private_ready)
		begin_burst(vp, vp->s->pq.n);
}

/* Returns a sleeping VP to wake, the nearest first; NULL: none. */
static struct kbi_vp *find_sleeping_vp(struct kbi_vp *vp)
{
	for (unsigned i = 1; i < kbi_vp_n; i++) {
		struct kbi_vp *w = kbi_vps[(vp->id + i) % kbi_vp_n];

		if (a_load_rlx(&w->doze))
			return w;
	}
	return NULL;
}

/* Called after the push of a task while some VP is idle. A polling VP takes surplus without a
 * system call. A sleeping VP costs a wake-up by the kernel, so it is woken only now and then
 * while this has gained nothing; but if no VP is awake enough to watch for stuck queues (no
 * monitor), it is woken at once. Tasks that cost less than their move stay here, except a sample
 * now and then: fine_skip. */
void kbi_vp_share(struct kbi_vp *vp)
{
	unsigned n = vp->s->pq.n - vp->s->pq.bound +
		     (vp->first && !kbi_task_is(vp->first, KBI_TASK_BOUND));
	struct kbi_vp *w;

	if (!vp->sched->private_ready)
		n = 2;
	if (n == 0)
		return;
	if (vp->idle_count == &vp->in_burst && a_zero32_rlx(&kbi_vps[0]->s->idle_count)) {
		continue_burst(vp, n);
		return;
	}
	vp->fine_skip = a_load_rlx(&kbi_idle_stats.fine_grained);
	if (n >= 2 && a_load_rlx(&kbi_idle_stats.polling)) {
		share_now(vp);
		return;
	}
	if (a_load_rlx(&vp->long_turns) && vp->private_ready) {
		kbi_vp_exchange(vp, KBI_POLL_ASKED);
		return;
	}
	if (n >= 2 && vp->share_skip > SHARE_SKIP_MAX)
		vp->share_skip = SHARE_SKIP_MAX;
	if (a_load_rlx(&kbi_idle_stats.polling) ||
		(vp->share_skip > 0 && a_load_rlx(&kbi_idle_stats.monitors))) {
		vp->share_skip -= vp->share_skip > 0;
		return;
	}
	vp->share_skip = a_load_rlx(&kbi_idle_stats.backoff);
	if (n >= 2) {
		share_now(vp);
		return;
	}
	/* fence: pairs with the sleeper's in agent.c; the sleeper re-checks none of our data, it
	 * only starts to watch */
	w = find_sleeping_vp(vp);
	if (w)
		kbi_vp_rouse(w);
}

/* The owner writes the count with plain stores; a stale value costs one needless or missing
 * look. */
__attribute__((no_sanitize("thread"))) unsigned kbi_vp_backlog(const struct kbi_vp *vp)
{
	unsigned n = *(const volatile uint32_t *)&vp->s->pq.n +
		     (*(struct kbi_task *const volatile *)&vp->first != NULL);

	return vp->sched->outside ? n + vp->sched->outside(vp->s) : n;
}

bool kbi_vp_arrived(const struct kbi_vp *vp)
{
	return vp->sched->arrived && vp->sched->arrived(vp->s);
}

uint64_t kbi_vp_progress(const struct kbi_vp *vp)
{
	return a_load_rlx(&vp->services) * vp->poll_every +
	       (vp->poll_every - a_load_rlx(&vp->countdown));
}

__attribute__((no_sanitize("thread"))) uint64_t kbi_vp_turns(const struct kbi_vp *vp)
{
	return kbi_vp_progress(vp) + *(const volatile uint64_t *)&vp->handovers;
}

bool kbi_vp_take_elsewhere(struct kbi_vp *vp, struct kbi_task *t)
{
	return vp->sched->take && vp->sched->take(vp->s, t);
}

/* At a look between two turns: returns true if the turns since the last look have been long. */
static bool turns_are_long(struct kbi_vp *vp, enum kbi_sched_why why, uint64_t now)
{
	uint64_t since = now - vp->looked_at;

	if (why != KBI_POLL_SWITCH)
		return false;
	vp->looked_at = now;
	return since > (uint64_t)vp->poll_every * SHORT;
}

/* Returns the ns between two samples. The more VPs are idle the shorter the time, so that a VP
 * that has got threads that yield for ever gets its share. */
static uint64_t sample_period(uint64_t fine, bool long_turns)
{
	uint64_t whole = fine * fine / FINE_PART, idle = a_load_rlx(&kbi_vps[0]->s->idle_count),
		least = SAMPLE_NS;

	if (whole <= least || long_turns)
		return whole < least ? whole : least;
	if (idle > 1)
		whole /= idle;
	return whole < least ? least : whole;
}

/* Tasks here are fine: returns how many go to idle VPs now. */
static uint32_t size_of_sample(struct kbi_vp *vp, enum kbi_sched_why why)
{
	uint32_t fine = a_load_rlx(&kbi_idle_stats.fine_grained);
	uint64_t now;
	bool long_turns;

	if (why == KBI_POLL_IDLE) /* an idle VP passes on the tasks that busy VPs have given */
		return SAMPLE;
	now = kbi_sys_now();
	long_turns = turns_are_long(vp, why, now);
	vp->fine_skip = fine; /* pushes until the next look at the clock */
	if (now - vp->sampled_at < sample_period(fine, long_turns))
		return 0;
	vp->sampled_at = now;
	return SAMPLE;
}

unsigned kbi_vp_exchange(struct kbi_vp *vp, enum kbi_sched_why why)
{
	struct kbi_sched_wake wake = { .n = 0 };
	unsigned got;

	if (vp->first) {
		kbi_pq_prepend(&vp->s->pq, vp->first);
		vp->first = NULL;
	}
	if (why == KBI_POLL_TICK)
		vp->fine_skip = 0; /* the tasks pushed next may go, too */
	vp->s->limited = why != KBI_POLL_TICK && a_load_rlx(&kbi_idle_stats.fine_grained) &&
			 !a_load_rlx(&vp->long_turns);
	if (vp->s->limited)
		vp->s->most = size_of_sample(vp, why);
	if (why == KBI_POLL_PUSH && vp->s->limited && !vp->s->most)
		return 0;
	got = vp->sched->poll(vp->s, why, &wake);

	for (unsigned i = 0; i < wake.n; i++)
		kbi_vp_rouse(kbi_vps[wake.vp[i]]);
	return got;
}

/* ---- tasks from outside ---------------------------------------------------------------------- */

void kbi_vp_send(struct kbi_vp *to, struct kbi_task *t)
{
	void *old = a_load_rlx(&to->inbox);

	/* release: pairs with the acquire of any reader of the state; a_cas_rel pairs with the
	 * acquire in kbi_vp_receive */
	a_store_rel(&t->state, KBI_STATE(KBI_TASK_WAIVED, to->id));
	do
		t->next = old;
	while (!a_cas_rel(&to->inbox, &old, t));
	a_store_rel(&to->board.marked, 1);
	/* fence: pairs with the sleeper's between doze and its last look */
	a_fence_sc();
	kbi_vp_rouse(to);
}

unsigned kbi_vp_receive(struct kbi_vp *vp)
{
	struct kbi_task *t, *fifo = NULL;
	unsigned n = 0;

	if (!a_load_rlx(&vp->inbox))
		return 0;
	/* acquire: pairs with the release in kbi_vp_send */
	t = a_xchg_acq(&vp->inbox, NULL);
	while (t) {
		struct kbi_task *next = t->next;

		t->next = fifo;
		fifo = t;
		t = next;
	}
	for (; fifo; n++) {
		t = fifo;
		fifo = t->next;
		kbi_vp_push(vp, t, false);
	}
	/* law 3; pairs with the fence in kbi_domain_wake_from_outside and in leave_permit */
	a_fence_sc();
	return n;
}

void kbi_vp_rouse(struct kbi_vp *w)
{
	/* release: pairs with the acquire of `doze` when the sleeper in agent.c wakes */
	if (kbi_unlikely(a_load_rlx(&w->doze)))
		kbi_vp_wake_worker(w, a_xchg_acqrel(&w->doze, KBI_DOZE_NO));
}

void kbi_vp_wake_worker(struct kbi_vp *w, uint32_t doze)
{
	if (doze == KBI_DOZE_SOURCE)
		kbi_source_known()->kick(w);
	else if (doze != KBI_DOZE_NO)
		kbi_sys_futex_wake(&w->doze, 1);
}

/* ---- hold of a sleeper's domain -------------------------------------------------------------- */

bool kbi_vp_hold(struct kbi_vp *dom)
{
	uint32_t offered = KBI_KEEPER_OFFERED;

	/* acquire: pairs with the release of its sleeper, which offered it, or of the last holder
	 * (kbi_vp_unhold) */
	return a_load_rlx(&dom->keeper) == offered &&
		a_cas_acq(&dom->keeper, &offered, KBI_KEEPER_TAKEN);
}

void kbi_vp_unhold(struct kbi_vp *dom)
{
	/* release: pairs with the acquire in kbi_vp_hold, and in agent.c when the sleeper wakes */
	a_store_rel(&dom->keeper, KBI_KEEPER_OFFERED);
}

uint32_t kbi_vp_ask_for_stacks(void)
{
	uint32_t request = a_add_rlx(&kbi_stack_reclaim_wanted, 1) + 1;

	kbi_stack_reclaim(0);
	return request;
}

/* Returns true if w's stacks have been reclaimed, or if this could be done for it. */
static bool gather_stacks_from(struct kbi_vp *w, const struct kbi_vp *me, uint32_t request)
{
	if (kbi_stack_is_reclaimed(w->id + 1, request))
		return true;
	if (w != me && !kbi_vp_hold(w))
		return false;
	kbi_stack_reclaim(w->id + 1);
	if (w != me)
		kbi_vp_unhold(w);
	return true;
}

bool kbi_vp_gather_stacks(const struct kbi_vp *me, uint32_t request)
{
	bool all = true;

	for (unsigned i = 0; i < kbi_vp_n; i++)
		all &= gather_stacks_from(kbi_vps[i], me, request);
	return all;
}
