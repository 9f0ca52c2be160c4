/* core/agent.c - the polling agent of a VP. It runs when none of the VP's threads is ready, looks
 * at every source and resumes the threads that it finds by a context switch; after a while without
 * work it sleeps in a futex.
 *
 * No lost wake-up. Sleeper: doze = 1 and SLEEPING, full fence, a last look at every source, offer
 * the domain, futex. A thread that makes work for this VP: publish, full fence, look at doze, wake.
 * At least one side sees the store of its partner. Model: model/board.pml.
 *
 * Runs on the VP's own stack with its own TLS; never preempted. */
#include <errno.h>

#include "base/option.h"
#include "core/timer.h"
#include "core/foreign.h"
#include "core/preempt.h"
#include "core/agent.h"
#include "core/steal_request.h"
#include "core/domain.h"
#include "core/sysmon.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "sched/source.h"
#include "os/sys.h"

bool (*kbi_agent_deadlock)(void);
a32 kbi_agent_for_signals;
void (*kbi_agent_sleeps)(struct kbi_vp *vp);
void (*kbi_agent_dozes)(struct kbi_vp *vp, bool asleep);

enum {
	SPINS_QUIET = 64,       /* looks before the VP says that it is idle: a conversation between VPs
	                         * ends sooner */
	SPINS_AN_EXCHANGE = 16, /* looks between two questions to the scheduler */
	SPINS_A_SOURCE = 8,     /* looks between two questions to the kernel whether it has events */
	SPINS_A_CLOCK = 32,     /* looks between two looks at the clock */
	SPINS_A_DEADLINE = 8,   /* and where a waiter has a deadline */
	SPINS_EVENTS = 16,      /* instead of SPINS_QUIET, if only the kernel's events can come */
	NO_TIME = 1,            /* ns: earlier than any deadline */
	NET_FIRST = 1000000,    /* ns until a sleeping monitor first looks up */
	NET_LAST = 10000000,    /* ns: its longest period */
	DEADLOCK_AFTER = 1000000000,
	SOURCE_OFTEN = 200000,  /* ns between two questions for events, below which a sleeper leaves
	                         * them to busy VPs */
	SOURCE_NAP = 1000000,   /* ns until it looks whether busy VPs still ask */
	EVENTS_PART = 8, /* the time to poll is divided by this if only the kernel's events can come */
	BACKOFF_MAX = 65536,    /* pushes: about a millisecond of a conversation */
	FINE = 400,             /* ns, with two VPs: tasks that are shorter stay where they are */
	FEED = 1500,            /* ns, with two VPs: from idleness to the first task's end and back,
	                         * whatever the task does */
	FEED_LEAST = 500,
	FINE_LEAST = 200,
	FINE_SKIP_MAX = 4096,
	FINE_SURE = 1024,       /* pushes: the result of several samples */
	TRIM_EVERY = 5000000,   /* ns */
	COARSE = 10000,         /* ns: tasks that are longer on average are surely not fine */
};

struct idle {
	uint64_t since; /* ns: when the clock was first read; 0: not yet */
	uint64_t net;   /* ns: period at which a monitor looks up */
	uint64_t looked; /* ns: when a monitor last looked */
	struct kbi_steal_request request;
	uint32_t spins;
	bool nudged;    /* it was woken, perhaps only to look for work */
	bool said;      /* a deadlock was reported */
	bool rested;    /* no wake-up came in the last sleep, and all VPs are idle */
	bool unwanted;  /* its last gift of tasks was not worth the move: no more work is expected
	                 * soon */
};

/* ---- conversation ---------------------------------------------------------------------------- */

/* Judges the run of the task that mail woke from the idle loop: was it short? */
static void judge_mail_run(struct kbi_vp *vp)
{
	struct kb_thread *t = vp->idle_ran;

	vp->idle_ran = NULL;
	/* acquire: partner is the release in kbi_wait_sleep. The thread is ours only if it waits here
	 * again */
	if (a_load_acq(&t->task.state) != vp->waiting_here)
		return;
	if (kbi_sys_now() - vp->idle_ran_at < 2000)
		t->pingpong += t->pingpong < 4;
	else
		t->pingpong = 0;
}

/* ---- grain ----------------------------------------------------------------------------------- */

/* Scales a limit to the number of VPs. The more VPs help, the shorter are the tasks that are worth
 * moving; the feeding may take less, too: fine tasks that come singly to many hungry VPs end sooner
 * than that. */
static uint64_t scale_to_vps(uint64_t two, uint64_t least)
{
	uint64_t v = 2 * two / kbi_vp_n;

	return v > least ? v : least;
}

/* Notes that the VP was idle and has got tasks of another VP. */
static void note_taken_tasks(struct kbi_vp *vp, uint64_t taken)
{
	vp->fed_before = taken;
	vp->fed_at = kbi_sys_now();
}

/* Decides, when the VP has nothing to run again, whether the tasks were worth the move. A task
 * costs its giver and its joiner some 100 ns each to part with; tasks that ran for less are better
 * run where they are. A single task always took a microsecond, with cold caches: without FEED, fine
 * tasks that come singly, because they are shared at once, would be taken for coarse tasks and
 * shared at once for ever. Without a monitor nobody would notice that tasks have become longer.
 * Returns true if the move was not worth it. */
static bool weigh_taken_tasks(struct kbi_vp *vp)
{
	uint64_t n = vp->s->taken - vp->fed_before;
	uint32_t b = a_load_rlx(&kbi_idle_stats.fine_grained);
	bool coarse = kbi_sys_now() - vp->fed_at >=
		n * scale_to_vps(FINE, FINE_LEAST) + scale_to_vps(FEED, FEED_LEAST);

	if (coarse)
		b /= 8; /* the kernel may have held this VP: a single look is not enough to be sure */
	else if (b < FINE_SKIP_MAX && kbi_options.tick_ms > 0)
		b = b * 2 + 64;
	if (a_load_rlx(&kbi_idle_stats.fine_grained) != b)
		a_store_rlx(&kbi_idle_stats.fine_grained, b);
	vp->fed_at = 0;
	return !coarse && b >= FINE_SURE;
}

/* ---- publishing the state of this VP -------------------------------------------------------- */

static void set_idle(struct kbi_vp *vp, enum kbi_sched_idle what)
{
	uint32_t old = a_load_rlx(&vp->s->idle);

	if (old == (uint32_t)what)
		return;
	if (old == KBI_IDLE_POLLING)
		a_sub_rlx(&kbi_idle_stats.polling, 1);
	if (what == KBI_IDLE_POLLING)
		a_add_rlx(&kbi_idle_stats.polling, 1);
	if (old == KBI_IDLE_BUSY)
		a_add_rlx(&kbi_vps[0]->s->idle_count, 1);
	if (what == KBI_IDLE_BUSY)
		a_sub_rlx(&kbi_vps[0]->s->idle_count, 1);
	a_store_rlx(&vp->s->idle, what);
}

/* Takes a place among the VPs that may poll under the option pollers. Returns false if all are
 * taken. */
static bool poller_enter(struct kbi_vp *vp)
{
	uint32_t limit = kbi_options.pollers;

	if (limit == 0 || vp->poller)
		return true;
	if (a_add_rlx(&kbi_idle_stats.pollers, 1) < limit) {
		vp->poller = 1;
		return true;
	}
	a_sub_rlx(&kbi_idle_stats.pollers, 1);
	return false;
}

static void poller_leave(struct kbi_vp *vp)
{
	if (!vp->poller)
		return;
	vp->poller = 0;
	a_sub_rlx(&kbi_idle_stats.pollers, 1);
}

/* ---- how long it is idle --------------------------------------------------------------------- */

/* A single word, so that a reader sees a single moment: the time without a thread to run, or, while
 * the VP has none (IDLE_NOW), that time less the time at which it ran out of threads. */
#define IDLE_NOW (UINT64_C(1) << 63)

/* Starts the clock only if it has been asked for: a message from VP to VP would wait for the second
 * look at the clock. */
static void idle_begins(struct kbi_vp *vp)
{
	if (kbi_unlikely(a_load_rlx(&kbi_idle_stats.clocked)))
		a_store_rlx(&vp->idle_ns, (a_load_rlx(&vp->idle_ns) - kbi_sys_now()) | IDLE_NOW);
}

static void idle_ends(struct kbi_vp *vp)
{
	uint64_t was = a_load_rlx(&vp->idle_ns);

	if (kbi_unlikely(was & IDLE_NOW))
		a_store_rlx(&vp->idle_ns, (was + kbi_sys_now()) & ~IDLE_NOW);
}

uint64_t kbi_agent_idle_ns(struct kbi_vp *vp)
{
	uint64_t was;

	if (!a_load_rlx(&kbi_idle_stats.clocked))
		a_store_rlx(&kbi_idle_stats.clocked, 1);
	was = a_load_rlx(&vp->idle_ns);
	return was & IDLE_NOW ? (was + kbi_sys_now()) & ~IDLE_NOW : was;
}

/* ---- the monitor's duty ---------------------------------------------------------------------- */

/* Returns true if tasks were thought to be fine and are not any more: then the tasks that w has
 * kept may go. If they are coarse on w, or the kernel holds w, a single look is not enough to be
 * sure. */
static bool is_coarse(struct kbi_vp *w, uint64_t now)
{
	uint64_t n = kbi_vp_turns(w), turns = n - a_xchg_rlx(&w->seen_turns, n),
		since = now - a_xchg_rlx(&w->seen_at, now);
	uint32_t b = a_load_rlx(&kbi_idle_stats.fine_grained);

	if (kbi_likely(!b) || since < NET_FIRST / 2 || turns * COARSE > since || !kbi_vp_backlog(w))
		return false;
	a_store_rlx(&kbi_idle_stats.fine_grained, b / 8);
	return b / 8 == 0;
}

/* Returns true if work waits behind a thread that has not switched since the last look, or is kept
 * there for no reason: its VP then gets the tick, which gives the waiting work away. */
static bool has_stuck_work(struct kbi_vp *w, uint64_t now)
{
	uint64_t n = kbi_vp_progress(w);
	/* several VPs may monitor: each look counts for all */
	bool moved = a_xchg_rlx(&w->seen_progress, n) != n;

	if (a_load_rlx(&w->s->idle) != KBI_IDLE_BUSY || (!is_coarse(w, now) && moved))
		return false;
	return kbi_agent_has_work(w, now);
}

bool kbi_agent_has_work(struct kbi_vp *w, uint64_t now)
{
	return kbi_vp_backlog(w) > 0 || kbi_agent_has_news(w, now);
}

bool kbi_agent_has_news(struct kbi_vp *w, uint64_t now)
{
	return kbi_vp_arrived(w) || a_load_rlx(&w->board.marked) || a_load_rlx(&w->n_watches) ||
	       a_load_rlx(&w->next_deadline) <= now || kbi_board_mail_any(&w->board, kbi_vp_n);
}

static void monitor_vps(struct kbi_vp *vp, struct idle *idle)
{
	uint64_t now = kbi_sys_now();

	/* with a quantum sysmon sends ticks, and knows the calls that they must not end */
	if (kbi_options.quantum || now - idle->looked < NET_FIRST)
		return;
	idle->looked = now;
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (kbi_vps[i] != vp && has_stuck_work(kbi_vps[i], now))
			kbi_preempt_send(kbi_vps[i]);
}

/* Chooses a new monitor among the sleepers. vp is busy from now on and may have been the last VP
 * that looked up now and then, or all have slept for long. This costs a system call at most once a
 * nap of that monitor. No gap: vp has taken itself off idle_count, and behind the fence looks
 * whether any VP polls, monitors or dozes. A sleeper gives up polling or monitoring, says that it
 * dozes, and looks at idle_count behind its own fence. If the sleeper missed that vp is busy, vp
 * sees it doze and sees nothing else; if vp saw it poll or monitor, the sleeper has yet to look. */
static void appoint_monitor(struct kbi_vp *vp)
{
	if (kbi_vp_n == 1 || kbi_options.tick_ms == 0)
		return;
	a_fence_after_rmw(); /* set_idle's. Partner: the fence in sleep_in_kernel */
	if (a_load_rlx(&kbi_idle_stats.polling) || a_load_rlx(&kbi_idle_stats.monitors))
		return;
	for (unsigned i = 1; i < kbi_vp_n; i++) {
		struct kbi_vp *w = kbi_vps[(vp->id + i) % kbi_vp_n];
		uint32_t doze = a_load_rlx(&w->doze);

		if ((doze == KBI_DOZE_YES || doze == KBI_DOZE_SOURCE) &&
		    /* acquire, release: partners are the exchanges in sleep_in_kernel and kbi_vp_rouse */
		    a_cas_acqrel(&w->doze, &doze, KBI_DOZE_MONITOR)) {
			kbi_vp_wake_worker(w, doze);
			return;
		}
	}
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Polls the domains of sleepers that watch memory words. */
static void poll_others(struct kbi_vp *vp)
{
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		struct kbi_vp *w = kbi_vps[i];

		if (w != vp && a_load_rlx(&w->n_watches) && kbi_vp_hold(w)) {
			kbi_domain_poll(vp, w, 0);
			kbi_vp_unhold(w);
		}
	}
}

static struct kbi_task *poll_own_domain(struct kbi_vp *vp, uint64_t now)
{
	kbi_domain_poll(vp, vp, now);
	return kbi_vp_pop(vp);
}

/* Looks, and asks the scheduler, too, whose words other VPs write. A message needs no such
 * question. */
static struct kbi_task *poll_with_sched(struct kbi_vp *vp)
{
	struct kbi_task *t = poll_own_domain(vp, 0);

	if (t)
		return t;
	kbi_vp_exchange(vp, KBI_POLL_IDLE);
	return kbi_vp_pop(vp);
}

/* Looks as part of a long series: the clock costs more than the rest of a look, so it is read for
 * deadlines at the first look and then at every few looks. */
static struct kbi_task *poll_at_spin(struct kbi_vp *vp, uint32_t spins)
{
	if (spins % SPINS_AN_EXCHANGE == SPINS_AN_EXCHANGE - 1)
		return poll_with_sched(vp);
	return poll_own_domain(vp, spins % SPINS_A_DEADLINE ? NO_TIME : 0);
}

/* ---- sleeping in the kernel ------------------------------------------------------------------ */

static void reclaim_keeper(struct kbi_vp *vp)
{
	for (unsigned i = 0;; i++) {
		uint32_t offered = KBI_KEEPER_OFFERED;

		/* acquire: partner is the release in kbi_vp_unhold */
		if (a_cas_acq(&vp->keeper, &offered, KBI_KEEPER_SELF))
			return;
		if (i % 64 == 63)
			kbi_sys_yield_to_holder(i / 64);
		kbi_cpu_relax();
	}
}

/* Returns how long vp may sleep, ns: until its next deadline; while other VPs are busy it looks up
 * for stuck queues. */
static uint64_t sleep_time_of_vp(struct kbi_vp *vp, struct idle *idle, uint64_t now,
	bool *monitoring)
{
	uint64_t at = kbi_vp_first_deadline(vp), left = at == UINT64_MAX ? at : at > now ? at - now : 0;
	bool all = a_load_rlx(&kbi_vps[0]->s->idle_count) >= kbi_vp_n;

	*monitoring = !all && kbi_options.tick_ms > 0;
	if (*monitoring && idle->net < left)
		left = idle->net;
	if (all && vp->id == 0 && !idle->said && left > DEADLOCK_AFTER)
		left = DEADLOCK_AFTER;
	if (a_load_rlx(&vp->n_watches) > a_load_rlx(&vp->n_rung) && left > 100000)
		left = 100000;
	if (left > TRIM_EVERY && kbi_stack_is_used(vp->id + 1))
		left = TRIM_EVERY;
	return left;
}

static bool sleep_in_futex(struct kbi_vp *vp, uint64_t left)
{
	struct timespec ts = kbi_sys_timespec(left);

	return kbi_sys_futex_wait(&vp->doze, KBI_DOZE_YES, left == UINT64_MAX ? NULL : &ts) ==
	       -ETIMEDOUT;
}

/* Sleeps with the domain offered. Returns true if no wake-up came. */
static bool sleep_offering_domain(struct kbi_vp *vp, uint64_t left, bool in_source)
{
	bool over;

	vp->n_sleeps++;
	/* release: partner is the acquire in kbi_vp_hold */
	a_store_rel(&vp->keeper, KBI_KEEPER_OFFERED);
	over = in_source ? kbi_source_known()->sleep(left) : sleep_in_futex(vp, left);
	reclaim_keeper(vp);
	return over;
}

/* Returns true if a busy VP asks for events so often that no sleeper is needed there. */
static bool source_is_served(uint64_t now)
{
	return a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n &&
	       now - a_load_rlx(&kbi_source.looked) < SOURCE_OFTEN;
}

/* Returns true if this VP becomes the sleeper in the source: threads wait for events and no VP
 * sleeps there. Else sets *nap to the time after which this VP looks up, ns. */
static bool become_source_sleeper(uint64_t now, uint64_t *nap)
{
	*nap = UINT64_MAX;
	if (a_zero32_rlx(&kbi_source.waiting) || a_load_rlx(&kbi_source.sleeper) || !kbi_source_known())
		return false;
	if (!source_is_served(now))
		/* acquire: partner is the release in leave_source */
		return !a_xchg_acq(&kbi_source.sleeper, 1);
	*nap = SOURCE_NAP;
	return false;
}

/* Ends the sleep in the source. release: partner is the acquire of the next sleeper; both use the
 * same buffer. */
static void leave_source(struct kbi_vp *vp, bool slept)
{
	if (slept)
		kbi_source_known()->deliver(vp);
	a_store_rel(&kbi_source.sleeper, 0);
}

/* Returns true if every VP sleeps, nobody has a deadline or waits for signals, and no kernel thread
 * is left that could wake a thread. */
static bool nothing_can_happen(struct kbi_vp *vp)
{
	if (a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n || kbi_foreign_count() > 0 ||
	    a_load_rlx(&kbi_source.waiting) || a_load_rlx(&kbi_agent_for_signals))
		return false;
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		struct kbi_vp *w = kbi_vps[i];

		if (a_load_rlx(&w->n_watches) || a_load_rlx(&w->next_deadline) != UINT64_MAX ||
		    (w != vp && !a_load_rlx(&w->doze)))
			return false;
	}
	return true;
}

/* Gives back memory of free stacks; returns true if it did. While VPs are busy it trims only a few
 * now and then: stacks are used again soon then, and each trim costs the other processors a moment,
 * as they forget its pages. */
static bool trim_stacks(struct kbi_vp *vp, const struct idle *idle, uint64_t now)
{
	if (!kbi_stack_is_used(vp->id + 1) || (!idle->rested && now - vp->trimmed_at < TRIM_EVERY))
		return false;
	vp->trimmed_at = now;
	kbi_stack_trim(vp->id + 1);
	return true;
}

/* Sleeps in the kernel. Returns a task that turned up at the last look, or NULL: to be called again
 * when nothing has turned up. */
static struct kbi_task *sleep_in_kernel(struct kbi_vp *vp, struct idle *idle)
{
	struct kbi_task *t;
	bool monitoring, over, in_source, rung = a_load_rlx(&vp->n_rung);
	uint64_t left, now = kbi_sys_now(), most;

	if (kbi_unlikely(trim_stacks(vp, idle, now)))
		return NULL;
	if (kbi_agent_sleeps)
		kbi_agent_sleeps(vp);
	set_idle(vp, KBI_IDLE_SLEEPING);
	in_source = become_source_sleeper(now, &most);
	/* release: partner is the exchange in kbi_vp_rouse */
	a_store_rel(&vp->doze, in_source ? KBI_DOZE_SOURCE : KBI_DOZE_YES);
	if (rung)
		kbi_agent_dozes(vp, true);
	a_fence_sc(); /* partner: the fence of every maker of work, before it reads doze or idle */
	t = poll_with_sched(vp);
	if (t) {
		a_store_rlx(&vp->doze, KBI_DOZE_NO);
		if (rung)
			kbi_agent_dozes(vp, false);
		if (in_source)
			leave_source(vp, false);
		return t;
	}
	poller_leave(vp);
	a_store_rlx(&vp->next_deadline, kbi_vp_first_deadline(vp));
	left = sleep_time_of_vp(vp, idle, now, &monitoring);
	if (left > most)
		left = most;
	if (monitoring)
		a_add_rlx(&kbi_idle_stats.monitors, 1);
	kbi_single_threaded_park(vp);
	over = sleep_offering_domain(vp, left, in_source);
	if (monitoring)
		a_sub_rlx(&kbi_idle_stats.monitors, 1);
	/* acquire: partner is the exchange in kbi_vp_rouse, or the CAS in appoint_monitor */
	idle->nudged = a_xchg_acqrel(&vp->doze, KBI_DOZE_NO) == KBI_DOZE_NO;
	idle->rested = over && !idle->nudged && a_load_rlx(&kbi_vps[0]->s->idle_count) >= kbi_vp_n;
	if (rung)
		kbi_agent_dozes(vp, false);
	if (in_source)
		leave_source(vp, true);
	if (idle->nudged)
		return NULL;
	if (monitoring)
		monitor_vps(vp, idle);
	else if (over && left == DEADLOCK_AFTER && kbi_agent_deadlock && nothing_can_happen(vp))
		idle->said = kbi_agent_deadlock();
	if (monitoring && idle->net < NET_LAST)
		idle->net *= 2;
	return NULL;
}

/* Learns from a wake-up to look for work: after a wake-up that led to nothing the next comes
 * later. */
static void adjust_wake_backoff(struct idle *idle, bool gained)
{
	uint32_t b = a_load_rlx(&kbi_idle_stats.backoff);

	if (!idle->nudged)
		return;
	idle->nudged = false;
	if (gained)
		b = 0;
	else if (b < BACKOFF_MAX)
		b = b * 2 + 16;
	a_store_rlx(&kbi_idle_stats.backoff, b);
}

/* Returns true if this VP has nothing to poll for but the kernel's events. If no VP runs a thread
 * only those can come, and they wake a sleeper by themselves: to ask for them again and again costs
 * more than an earlier answer saves. */
static bool waits_for_events(const struct kbi_vp *vp)
{
	return !a_zero32_rlx(&kbi_source.waiting) && !a_load_rlx(&vp->n_watches);
}

/* Returns how long to poll, ns. */
static uint64_t poll_time_of_vp(const struct kbi_vp *vp)
{
	uint64_t whole = (uint64_t)kbi_options.spin_us * 1000;

	if (!waits_for_events(vp) || a_load_rlx(&kbi_vps[0]->s->idle_count) < kbi_vp_n)
		return whole;
	return kbi_vp_n == 1 ? 0 : whole / EVENTS_PART;
}

/* Returns the number of looks before the VP says that it is idle. */
static uint32_t quiet_spins_of_vp(const struct kbi_vp *vp)
{
	return kbi_vp_n == 1 && waits_for_events(vp) ? SPINS_EVENTS : SPINS_QUIET;
}

/* Returns false if the VP has polled long enough, or other VPs poll and it may not. */
static bool keep_polling(struct kbi_vp *vp, struct idle *idle)
{
	uint64_t now;

	if (!poller_enter(vp))
		return false;
	if (idle->spins % SPINS_A_SOURCE == SPINS_A_SOURCE / 2 && kbi_source_due())
		kbi_source_poll(vp);
	if (idle->spins++ < quiet_spins_of_vp(vp))
		return true;
	if (idle->unwanted)
		return false;
	set_idle(vp, KBI_IDLE_POLLING);
	kbi_cpu_relax();
	if (idle->spins % SPINS_A_CLOCK)
		return true;
	poll_others(vp);
	kbi_stack_reclaim_if_wanted(vp->id + 1);
	/* the thread that has the expected work may be waiting for this processor */
	if (kbi_unlikely(a_load_rlx(&kbi_idle_stats.oversubscribed)))
		kbi_sys_yield();
	now = kbi_sys_now();
	if (!idle->since)
		idle->since = now;
	kbi_steal_request_send(vp, &idle->request, now);
	if (now - idle->since >= NET_FIRST && kbi_options.tick_ms > 0)
		monitor_vps(vp, idle); /* while this VP polls for long, no other VP monitors */
	/* a VP that has sent the tick gets its answer soon */
	return now - idle->since < poll_time_of_vp(vp) << (idle->request.ticked != UINT64_MAX);
}

/* Wakes sysmon and the standstill watcher: both may sleep for good while all VPs are idle. */
static void tell_sysmon(void)
{
	a_fence_after_rmw(); /* set_idle's. Partners: the fences in sysmon.c and standstill.c */
	if (kbi_unlikely(a_load_rlx(&kbi_sysmon_watcher_asleep)))
		kbi_sysmon_wake_watcher();
	if (kbi_options.quantum && kbi_unlikely(a_load_rlx(&kbi_sysmon_bell) == KBI_BELL_ASLEEP))
		kbi_sysmon_wake();
}

static struct kbi_task *await_ready_task(struct kbi_vp *vp)
{
	struct idle idle = { .net = NET_FIRST, .request = { .ticked = UINT64_MAX } };
	struct kbi_task *t;
	uint64_t taken = vp->s->taken;
	bool was_idle;

	if (vp->idle_ran)
		judge_mail_run(vp);
	if (vp->fed_at)
		idle.unwanted = weigh_taken_tasks(vp);
	idle_begins(vp);
	while (!(t = poll_at_spin(vp, idle.spins))) {
		if (keep_polling(vp, &idle))
			continue;
		adjust_wake_backoff(&idle, false);
		t = sleep_in_kernel(vp, &idle);
		if (t)
			break;
		/* after a mere time-out it goes back to sleep at once, as if it had polled for long
		 * already */
		idle.unwanted = false;
		idle.since = idle.nudged ? 0 : 1;
		idle.spins = idle.nudged ? 0 : UINT32_MAX / SPINS_A_CLOCK * SPINS_A_CLOCK - 1;
	}
	adjust_wake_backoff(&idle, true);
	poller_leave(vp);
	was_idle = a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY;
	set_idle(vp, KBI_IDLE_BUSY);
	if (was_idle) {
		appoint_monitor(vp);
		tell_sysmon();
	}
	kbi_single_threaded_unpark(vp);
	if (vp->s->taken != taken)
		/* not before that system call: fine tasks would look coarse */
		note_taken_tasks(vp, taken);
	idle_ends(vp);
	return t;
}

void kbi_agent_run(struct kbi_worker *me)
{
	struct kbi_vp *vp = me->vp;

	vp->fp_now = kbi_fp_get(); /* a context's first entry loads the words it was made with */
	/* NULL: a thread that came back from a blocking call has left this worker. Or a new VP, which
	 * that thread took */
	while ((vp = me->vp)) {
		struct kbi_task *t = kbi_run_next(vp);

		kbi_run_task(vp, t ? t : await_ready_task(vp));
	}
}
