/* core/handoff.c - lends and takes a VP. Contract in handoff.h. Model: model/handoff.pml.
 *
 * A thread that may block lends its VP: it writes a word that was never there before into vp->lent,
 * and removes it again by a CAS. While the word is there, sysmon or a thread may replace it by
 * TAKEN with a CAS; the winner then owns the VP with all its contents, and the lender, when its
 * call is over, finds that out by its own CAS: exactly one of the two has the VP. The lender is on
 * no VP meanwhile, so that a signal handler on it does not touch the VP's queues.
 *
 * The usual taker is sysmon, a kernel thread that sleeps until a VP is lent and then looks at
 * intervals. It takes the VP at once if there is work for it, and after a millisecond anyway, so
 * that an idle VP sleeps and is woken as ever; sysmon need not look again then.
 *
 * A thread that finds its VP taken saves its context, goes back to the agent that its kernel thread
 * once ran, and is sent from there to a VP as a ready thread. That kernel thread is an idle worker
 * from then on. But if that VP or another VP is lent at this moment, the thread takes it, by the
 * same CAS as sysmon, and goes on there where it is: its kernel thread becomes that VP's
 * worker, and the agent on it that VP's agent. No wake-up is needed then.
 *
 * Not chosen: to give the VP away at each begin (a futex wake of 5 us for each call that would not
 * have blocked); a timer for each VP (a signal, which ends poll and its kin with EINTR). */
#include "core/handoff.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/foreign.h"
#include "core/lending.h"
#include "core/meter.h"
#include "core/place.h"
#include "core/run.h"
#include "core/single_threaded.h"
#include "core/stock.h"
#include "core/sysmon.h"
#include "core/wait.h"
#include "core/worker_maker.h"
#include "core/worker_pool.h"
#include "core/worker_thread.h"
#include "core/yield.h"
#include "libc/emulate.h"
#include "libc/endable.h"
#include "libc/real.h"
#include "mem/stack.h"
#include "os/sys.h"

void (*kbi_handoff_leaves)(struct kbi_task *self);
void (*kbi_handoff_takes)(struct kbi_vp *vp, struct kbi_task *self);
void (*kbi_handoff_departs)(struct kbi_task *self, void *context);

#define TAKEN KBI_LENDING_TAKEN

static a32 helpers; /* see kbi_handoff_helps */

/* ---- errno ----------------------------------------------------------------------------------- */

/* The place of errno changes with a light thread's VP: the compiler must not keep it. */
static KBI_NOINLINE int get_errno(void)
{
	kbi_compiler_barrier();
	return errno;
}

static KBI_NOINLINE void set_errno(int e)
{
	kbi_compiler_barrier();
	errno = e;
}

/* ---- idle workers --------------------------------------------------------------------------- */

/* Reckons with an idle worker for each VP: a call on each VP may have begun at the same moment. */
bool kbi_handoff_holds_up(void)
{
	if (kbi_likely(!kbi_worker_pool_is_scarce()))
		return false;
	kbi_lending_say_none();
	return true;
}

bool kbi_handoff_has_idle_worker(void)
{
	if (kbi_worker_pool_counts().idle)
		return true;
	kbi_lending_need_worker();
	return false;
}

/* Wakes sysmon, which sleeps or does not run yet, after a VP was lent. */
static KBI_NOINLINE void ring_sysmon(void)
{
	kbi_sysmon_wake();
	/* without sysmon the call blocks the VP; the next call tries again */
	kbi_handoff_start_sysmon();
}

int kbi_handoff_start_sysmon(void)
{
	uint32_t none = KBI_BELL_NONE;
	int e;

	/* no data is passed: of several callers a single caller starts it */
	if (!a_cas_acqrel(&kbi_sysmon_bell, &none, KBI_BELL_AWAKE))
		return 0;
	e = kbi_worker_start_closed(kbi_sysmon_run, NULL);
	if (e)
		a_store_rel(&kbi_sysmon_bell, KBI_BELL_NONE);
	else
		kbi_worker_maker_start();
	return e;
}

/* ---- begin ----------------------------------------------------------------------------------- */

/* Lends vp. b is vp's own worker; for the VP no thread runs on b. */
static inline void lend_vp(struct kbi_vp *vp, struct kbi_worker *b)
{
	uint64_t word = ++b->seq << KBI_LENDING_INDEX_BITS | b->index;

	b->lent = word & ~TAKEN;
	/* release: partners are the acquires in core/lending: the VP's queues. A full fence: partner is
	 * the fence in sleep_long of core/sysmon */
	a_xchg_acqrel(&vp->lent, b->lent);
	if (kbi_unlikely(a_load_rlx(&kbi_sysmon_bell) != KBI_BELL_AWAKE))
		ring_sysmon();
}

/* Gives vp to an idle worker at once if threads are ready here and an idle worker waits. Returns
 * true if it did. */
static bool give_vp_now(struct kbi_vp *vp, struct kbi_worker *b)
{
	struct kbi_worker *idle = kbi_vp_backlog(vp) ? kbi_worker_pool_take() : NULL;

	if (!idle)
		return false;
	kbi_single_threaded_end();
	b->lent = 0;
	a_store_rlx(&vp->lent, TAKEN);
	kbi_lending_give(vp, idle);
	return true;
}

/* Takes the thread off its VP, which is still its own. Returns the worker. */
static inline struct kbi_worker *depart_from_vp(struct kb_thread *t, struct kbi_vp *vp)
{
	struct kbi_worker *b = vp->worker;

	b->ctx = vp->agent_ctx;
	b->cur_tp = vp->cur_tp;
	b->home = vp;
	b->depth = 1;
	b->lent = 0;
	b->kept = vp->n_held > 0;
	b->found = 0;
	b->habit = NULL;
	b->begun_at = 0;
	a_store_rlx(&b->displaced, 0);
	a_store_rlx(&b->guest, t);
	t->worker = b->index;
	a_store_rlx(&vp->next_deadline, kbi_vp_first_deadline(vp));
	t->task.vp = NULL;
	/* release: partners are the acquires in kbi_handoff_is_away and kbi_handoff_tid */
	a_store_rel(&t->task.state, KBI_STATE(KBI_TASK_BLOCKED, vp->id));
	return b;
}

static inline void begin_blocking_call(enum kbi_handoff_hint hint, struct kbi_handoff_habit *habit)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = kbi_thread_of(self);
	struct kbi_vp *vp;
	struct kbi_worker *b;

	if (kbi_handoff_departs && self && self->vp && !a_load_rlx(&self->np))
		kbi_handoff_departs(self, NULL);
	if (kbi_unlikely(!self || !self->vp)) {
		if (self && t->worker)
			kbi_workers[t->worker].depth++;
		return;
	}
	kbi_np_enter(self);
	vp = self->vp;
	b = depart_from_vp(t, vp);
	b->habit = habit;
	if (kbi_unlikely(habit && kbi_vp_backlog(vp)))
		b->begun_at = kbi_sys_now();
	/* kept: light threads that were preempted here must come back to this worker's TLS block, so
	 * all other work of the VP, its mail, too, waits for the call: kochab/kochab.h documents
	 * that */
	if (kbi_likely(!b->kept) && (hint != KBI_HANDOFF_SURELY || !give_vp_now(vp, b)))
		lend_vp(vp, b);
	kbi_place_leave(); /* neither the call nor a child that it makes is bound with the VP */
	kbi_np_leave(self);
}

void kbi_handoff_begin(enum kbi_handoff_hint hint)
{
	begin_blocking_call(hint, NULL);
}

void kbi_handoff_begin_as(struct kbi_handoff_habit *habit)
{
	begin_blocking_call(kbi_unlikely(a_load_rlx(&habit->lasts)) ? KBI_HANDOFF_SURELY :
		KBI_HANDOFF_PERHAPS, habit);
}

/* Learns from the end of a call of a kind. lost: b's VP is another worker's; if it was lent the
 * call lasted, or sysmon would not have taken the VP. A VP given in vain costs a tenth of a
 * wait for sysmon. */
static void learn_habit(struct kbi_worker *b, bool lost)
{
	enum { LASTED = 50000 /* ns */, TIMES = 10 };
	struct kbi_handoff_habit *h = b->habit;
	uint32_t before = a_load_rlx(&h->lasts);

	if (lost && b->lent && a_load_rlx(&b->displaced))
		return;
	if ((lost && b->lent) || kbi_sys_now() - b->begun_at >= LASTED)
		a_store_rlx(&h->lasts, TIMES);
	else if (before)
		a_store_rlx(&h->lasts, before - 1);
}

/* Gives away the VP that b has lent. Returns true when it is another worker's; false: no kernel
 * thread can be had. */
static bool give_vp_away(struct kbi_worker *b)
{
	enum { NAP = 100000 /* ns */, TIMES = 100 };
	struct timespec nap = { 0, NAP };

	for (int in_vain = 0; in_vain < TIMES;) {
		uint64_t word = b->lent;
		struct kbi_worker *idle;

		if (!word || a_load_rlx(&b->home->lent) != word)
			return true;
		idle = kbi_worker_pool_take();
		if (idle) {
			kbi_single_threaded_end();
			/* acquire, release: partners as in core/lending's take_lent_vp */
			if (a_cas_acqrel(&b->home->lent, &word, TAKEN))
				kbi_lending_give(b->home, idle);
			else
				kbi_worker_pool_put(idle);
			return true;
		}
		if (!kbi_worker_maker_ask() && !kbi_lending_one_comes())
			in_vain++;
		kbi_sys(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	return false;
}

bool kbi_handoff_keep(struct kbi_task *self)
{
	struct kbi_worker *b = &kbi_workers[kbi_thread_of(self)->worker];

	if (b->kept || !give_vp_away(b))
		return false;
	b->found = 0;
	kbi_place_leave();
	kbi_worker_pool_keep(b, true);
	return true;
}

void kbi_handoff_keep_no_more(struct kbi_task *self)
{
	kbi_worker_pool_keep(&kbi_workers[kbi_thread_of(self)->worker], false);
}

bool kbi_handoff_is_kept(const struct kb_thread *t)
{
	return t->worker && a_load_rlx(&kbi_workers[t->worker].changed);
}

bool kbi_handoff_is_given(const struct kbi_vp *vp, int tid)
{
	/* acquire: partners are the CAS in core/lending's take_lent_vp and in give_vp_away; the
	 * guest was set before */
	const struct kbi_worker *b = a_load_acq(&vp->lent) == TAKEN ? kbi_worker_of_tid(tid) : NULL;

	return b && a_load_rlx(&b->guest);
}

bool kbi_handoff_found(struct kbi_task *self, void *context)
{
	struct kbi_vp *vp = self->vp;
	struct kbi_worker *idle, *b;

	if (vp->n_held || !(idle = kbi_worker_pool_take()))
		return false;
	kbi_single_threaded_end();
	if (kbi_handoff_departs)
		kbi_handoff_departs(self, context);
	kbi_np_enter(self);
	b = depart_from_vp(kbi_thread_of(self), vp);
	b->found = 1;
	a_store_rlx(&vp->asked, 0);
	a_store_rlx(&vp->lent, TAKEN);
	kbi_lending_give(vp, idle);
	kbi_np_leave(self);
	return true;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Takes a permit that a wake-up of the BLOCKED thread has left in the futex word; a later wake-up
 * finds the new state. Called behind a full fence that follows the change of state; partner: the
 * fence in kbi_foreign_wake, after which the waker reads the state again. */
static inline void take_permit(struct kb_thread *t)
{
	if (kbi_unlikely(a_load_rlx(&t->futex) & 1) && (a_and_acqrel(&t->futex, ~1u) & 1))
		a_store_rlx(&t->task.permit, 1);
}

/* Makes t run on vp, which is its own and not lent any more. */
static inline void resume_on_vp(struct kb_thread *t, struct kbi_worker *b, struct kbi_vp *vp)
{
	t->worker = 0;
	a_store_rlx(&b->guest, NULL);
	t->task.vp = vp;
	/* an exchange, because it contains the full fence that take_permit needs */
	a_xchg_acqrel(&t->task.state, vp->running_here);
	take_permit(t);
}

/* Takes b's VP back. Returns true if it was not taken: the caller runs on it as before. */
static inline bool have_back(struct kb_thread *t, struct kbi_worker *b)
{
	uint64_t word = b->lent;
	struct kbi_vp *vp = b->home;

	/* acquire, release: partner is the CAS in core/lending's take_lent_vp or
	 * kbi_lending_win */
	if (!b->kept && (!word || !a_cas_acqrel(&vp->lent, &word, 0)))
		return false;
	kbi_place_take(vp);
	resume_on_vp(t, b, vp);
	return true;
}

/* ---- VPs that other threads have lent -------------------------------------------------------- */

/* Makes b the worker of vp, which is won. Its thread t goes on where it is; the agent that b once
 * ran becomes vp's. */
static void become_worker(struct kbi_worker *b, struct kb_thread *t, struct kbi_vp *vp)
{
	vp->cur = t;
	vp->cur_tp = b->cur_tp;
	vp->agent_ctx = b->ctx;
	vp->fp_now = kbi_fp_get();
	vp->handovers++; /* counts as another turn */
	kbi_vp_embody(vp, b);
	kbi_place_take(vp);
	if (kbi_handoff_takes)
		kbi_handoff_takes(vp, &t->task);
}

static bool win_lent_vp(struct kb_thread *t, struct kbi_worker *b, struct kbi_vp *vp)
{
	if (!kbi_lending_win(vp))
		return false;
	become_worker(b, t, vp);
	a_store_rel(&vp->lent, 0); /* partner: the acquire in kbi_handoff_is_given */
	resume_on_vp(t, b, vp);
	return true;
}

/* Returns the VP where t goes on: its old VP if that has nothing to do, or another VP without
 * work. */
static struct kbi_vp *destination_of_task(struct kbi_task *t, struct kbi_vp *home)
{
	if (kbi_task_is(t, KBI_TASK_BOUND))
		return kbi_vps[kbi_thread_of(t)->bound];
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		struct kbi_vp *vp = kbi_vps[(home->id + i) % kbi_vp_n];

		if (a_load_rlx(&vp->s->idle) != KBI_IDLE_BUSY)
			return vp;
	}
	return home;
}

/* Takes another VP for t, whose own VP has another worker: a VP that is lent for a call that still
 * lasts, and has nothing to do. A lent VP with work, which goes first then, only if no VP is
 * idle. */
static bool take_another_vp(struct kb_thread *t, struct kbi_worker *b)
{
	struct kbi_vp *to = destination_of_task(&t->task, b->home);

	if (a_load_rlx(&b->changed))
		return false;
	if (kbi_task_is(&t->task, KBI_TASK_BOUND))
		return win_lent_vp(t, b, to);
	for (unsigned i = 0; i < kbi_vp_n; i++) {
		struct kbi_vp *vp = kbi_vps[(b->home->id + i) % kbi_vp_n];

		if (a_load_rlx(&vp->lent) & ~TAKEN && !kbi_agent_has_work(vp, kbi_sys_now()) &&
		    win_lent_vp(t, b, vp))
			return true;
	}
	return a_load_rlx(&to->s->idle) == KBI_IDLE_BUSY && win_lent_vp(t, b, to);
}

/* Yields the processor, then tries again, if all VPs are busy and threads wait for the old VP: many
 * have come back at once. Most likely they are all about to lend again, and the thread that runs
 * there wants this very processor. */
static bool take_vp_after_yield(struct kb_thread *t, struct kbi_worker *b)
{
	if (!kbi_vp_backlog(b->home) && !a_load_rlx(&b->home->inbox))
		return false;
	kbi_sys_yield();
	return take_another_vp(t, b);
}

/* Sends the thread to a VP. Runs on the agent's stack: the thread's context is saved. */
static void *send_to_vp(void *arg)
{
	struct kb_thread *t = arg;
	struct kbi_worker *b = &kbi_workers[t->worker];

	t->worker = 0;
	a_store_rlx(&b->guest, NULL);
	a_sub_rlx(&kbi_lending_away, 1);
	kbi_vp_send(destination_of_task(&t->task, b->home), &t->task);
	return NULL;
}

/* Leaves this worker, whose VP has another worker: it becomes idle, and the thread goes on
 * elsewhere. */
static KBI_SWITCHER void leave_worker(struct kb_thread *t, struct kbi_worker *b)
{
	struct kbi_task *self = &t->task;
	uint64_t fp = kbi_fp_get();
	void *saved = NULL;

	if (kbi_handoff_leaves)
		kbi_handoff_leaves(self);
	kbi_meter_leave(b);
	b->vp = NULL;
	*b->self_slot = NULL;
#if KBI_HAVE_TP
	if (self->tp)
		kbi_tp_set(b->tp);
#endif
	kbi_san_depart(&saved, &b->san);
	kbi_ctx_switch_bare(&self->ctx, &b->ctx, send_to_vp, t);
	kbi_san_arrive(saved);
	self = kbi_self_raw();
	if (!KBI_CTX_BARE || self->tp)
		kbi_run_load_fp(self->vp, fp);
	a_fence_sc(); /* for take_permit: the state has changed since. Partner: the fence in
	               * kbi_foreign_wake */
	take_permit(kbi_thread_of(self));
}

static KBI_SWITCHER void leave_keeping_errno(struct kb_thread *t, struct kbi_worker *b)
{
	int e = get_errno();

	leave_worker(t, b); /* inside np brackets */
	set_errno(e);
}

/* Yields to threads that were ready before, or have been woken since. */
static KBI_SWITCHER void let_others_go_first(void)
{
	int e = get_errno();

	kbi_yield_now();
	set_errno(e);
}

/* Ends a call. word: the futex word where the call was woken; NULL: it was none. */
KBI_SWITCHES static inline __attribute__((always_inline)) bool end_blocking_call(void *word)
{
	struct kbi_task *self = kbi_self_raw();
	struct kb_thread *t = kbi_thread_of(self);
	struct kbi_worker *b;

	if (kbi_unlikely(!self || !t->worker))
		return !self || !self->vp;
	b = &kbi_workers[t->worker];
	if (kbi_unlikely(--b->depth))
		return true;
	kbi_np_enter(self);
	if (kbi_likely(have_back(t, b))) {
		if (kbi_unlikely(b->begun_at))
			learn_habit(b, false);
		kbi_np_leave(self);
		return true;
	}
	if (b->habit)
		learn_habit(b, true);
	if (take_another_vp(t, b)) {
		kbi_np_leave(self);
		let_others_go_first();
		return true;
	}
	if (word)
		kbi_sys_futex_wake_shared(word, 1);
	if (take_vp_after_yield(t, b)) {
		kbi_np_leave(self);
		let_others_go_first();
	} else {
		leave_keeping_errno(t, b);
		kbi_np_leave(kbi_self_raw());
	}
	return true;
}

KBI_SWITCHER bool kbi_handoff_end(void)
{
	return end_blocking_call(NULL);
}

KBI_SWITCHER bool kbi_handoff_end_found(struct kbi_task *self)
{
	struct kb_thread *t = kbi_thread_of(self);

	if (!t->worker || !kbi_workers[t->worker].found || kbi_workers[t->worker].depth > 1 ||
	    a_load_rlx(&self->np) > 0)
		return false;
	return kbi_handoff_end();
}

KBI_SWITCHER void kbi_handoff_end_all(struct kbi_task *self)
{
	struct kb_thread *t = kbi_thread_of(self);

	if (!t->worker)
		return;
	kbi_workers[t->worker].depth = 1;
	kbi_handoff_end();
}

/* ---- where threads are
 * --------------------------------------------------------------------------------- */

int kbi_handoff_tid(const struct kb_thread *t)
{
	/* acquire: partner is the release of the state in depart_from_vp */
	if (!kbi_handoff_is_away(t))
		return 0;
	for (uint32_t i = 1, n = kbi_worker_limit(); i <= n; i++)
		if (a_load_rlx(&kbi_workers[i].guest) == t)
			return (int)a_load_rlx(&kbi_workers[i].tid);
	return 0;
}

unsigned kbi_handoff_away(void)
{
	return a_load_rlx(&kbi_lending_away);
}

unsigned kbi_handoff_kernel_threads(void)
{
	return kbi_worker_pool_counts().workers + (a_load_rlx(&kbi_sysmon_bell) != KBI_BELL_NONE) +
	       kbi_worker_maker_runs() +
	       a_load_rlx(&helpers);
}

void kbi_handoff_helps(void)
{
	a_add_rlx(&helpers, 1);
	kbi_foreign_disown();
}

void kbi_handoff_helps_no_more(void)
{
	a_sub_rlx(&helpers, 1);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* Runs in the child of fork, which has a single kernel thread: a VP that it lent cannot be taken,
 * and it is not the worker of a VP that was taken. If it is no VP it must not wait for the thread
 * that was alone here, perhaps in a section. */
static void reset_fork_child(void)
{
	struct kbi_task *self = kbi_self_raw();

	a_store_rlx(&kbi_sysmon_bell, KBI_BELL_AWAKE); /* none is to be started */
	kbi_worker_pool_after_fork();
	kbi_stock_after_fork();
	kbi_descriptor_after_fork();
	kbi_stack_after_fork();
	kbi_segment_after_fork();
	kbi_foreign_after_fork();
	if (!self || !self->vp)
		kbi_single_threaded_after_fork();
	if (!self || !kbi_thread_of(self)->worker)
		return;
	kbi_thread_of(self)->worker = 0;
	/* release: partner is the acquire of a waker that reads the state */
	a_store_rel(&self->state, KBI_STATE(KBI_TASK_FOREIGN, 0));
}

/* ---- libc's locks ---------------------------------------------------------------------------- */

/* Makes libc's futex calls where libc's system calls are ours (libc/emulate): a thread that waits
 * for a lock or another event inside libc lends its VP. A thread without TLS of its own keeps its
 * VP: libc may hold an address in the VP's TLS meanwhile. A woken thread that must wait for its VP
 * wakes the next waiter, too: that waiter may have its VP with it, and libc wakes no other thread
 * until the first has had the lock. libc looks again after each wake-up, so a surplus wake-up does
 * no harm. */
static KBI_SWITCHER long wait_in_libc(const long a[6])
{
	struct kbi_task *self = kbi_self_raw();
	bool lends = self && self->vp && self->tp && !a_load_rlx(&self->np);
	long r;

	if (lends)
		kbi_handoff_begin(KBI_HANDOFF_PERHAPS);
	r = kbi_endable_call(SYS_futex, a);
	if (lends)
		end_blocking_call(r ? NULL : (void *)a[0]);
	return r;
}

void kbi_handoff_setup(void)
{
	kbi_emulate_futex = wait_in_libc;
	kbi_lending_setup();
	pthread_atfork(NULL, NULL, reset_fork_child);
}
