/* bench/sim/runtime.c - threads that are functions, on the runtime's own virtual processors.
 * Contract in runtime.h. The code here stands for core/thread, core/yield, core/worker_thread and
 * the waiting of sync/event, which need real stacks; and for functions that the compiled units
 * call in units that are not compiled in. */
#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/foreign.h"
#include "core/preempt.h"
#include "core/single_threaded.h"
#include "core/steal_request.h"
#include "core/sysmon.h"
#include "core/timer.h"
#include "os/sys.h"
#include "sync/event.h"

enum { ENDED = 1, RECENT = 256 };

/* ---- functions that the units call in units that are not compiled in ------------------------- */

struct kbi_single_threaded kbi_single_threaded;
a32 kbi_sysmon_bell, kbi_sysmon_watcher_asleep, kbi_spread_asked;
a32 kbi_stack_reclaim_wanted;
struct kbi_stack_slot *kbi_stack_slots;

void kbi_single_threaded_park(struct kbi_vp *vp) { (void)vp; }
void kbi_single_threaded_unpark_slow(struct kbi_vp *vp) { (void)vp; }
void kbi_sysmon_wake(void) { }
void kbi_sysmon_wake_watcher(void) { }
void kbi_spread_look_now(struct kbi_vp *vp) { (void)vp; }
void kbi_stack_reclaim(unsigned slot) { (void)slot; }
void kbi_stack_trim(unsigned slot) { (void)slot; }
bool kbi_stack_is_used(unsigned slot) { (void)slot; return false; }
uint32_t kbi_foreign_count(void) { return 0; }
void kbi_foreign_wake(struct kbi_task *t) { (void)t; }

void kbi_spin_slow(a32 *word, uint32_t bit)
{
	uint32_t old;

	do {
		sim_relax();
		old = a_load_rlx(word) & ~bit;
	} while (!a_cas_acq(word, &old, old | bit));
}

void kbi_preempt_send(struct kbi_vp *vp)
{
	sim_signal(vp->id);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static struct {
	struct sim_thread *thread;
	struct kbi_worker *worker;
	uint64_t random;
	uint64_t busy, *since; /* [VPs] when it began to run threads; 0: it runs none */
	/* stacks, last in first out: how many are in use, and when each was last a new thread's,
	 * counted in new threads */
	uint32_t stacks, *fetched; /* [VPs] */
	uint64_t firsts, *first_at; /* [threads] */
} r;

struct sim_thread *sim_thread(uint32_t i)
{
	return &r.thread[i];
}

struct kb_thread *kbi_descriptor_at(uint32_t index)
{
	return &r.thread[index].t;
}

uint64_t sim_random(void)
{
	r.random ^= r.random << 13;
	r.random ^= r.random >> 7;
	r.random ^= r.random << 17;
	return r.random * 0x2545F4914F6CDD1Du;
}

uint64_t sim_busy(void)
{
	uint64_t sum = r.busy, now = sim_clock();

	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (r.since[i] && r.since[i] < now)
			sum += now - r.since[i];
	return sum;
}

uint64_t sim_given(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < kbi_vp_n; i++)
		sum += kbi_vps[i]->s->given;
	return sum;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Charges a cold stack as mem/stack would: its record is touched when a batch is fetched from
 * the common list, its top when the thread begins. */
static void take_cold(unsigned vp)
{
	enum { BATCH = 64 };

	if (r.fetched[vp]++ % BATCH == 0)
		sim_spend(BATCH * sim_costs.first / 2);
	sim_spend(sim_costs.first / 2);
}

static void take_stack(unsigned vp)
{
	/* LINES: lines of a stack that a first turn touches; the simulator knows KNOWN of them:
	 * `near` */
	enum { LINES = 16, KNOWN = 4 };
	uint64_t *last = &r.first_at[r.stacks++], near = sim_costs.near / 1000 * KNOWN / LINES;

	if (!*last || r.firsts - *last > near)
		take_cold(vp);
	*last = ++r.firsts;
}

static void enter(struct kbi_vp *vp, struct sim_thread *s)
{
	kbi_run_enter(vp, &s->t.task);
	/* a new thread has a descriptor; an old thread has its stack, too */
	if (s->at != (int32_t)vp->id)
		sim_move((unsigned)s->at, s->started ? sim_costs.context : sim_costs.context / 2);
	s->at = (int32_t)vp->id;
	if (!s->started) {
		kbi_task_clear(&s->t.task, KBI_TASK_NOT_STARTED);
		take_stack(vp->id);
	}
	s->started = true;
}

/* Does what core/yield does. */
static struct kbi_task *after_yield(struct kbi_vp *vp, struct kbi_task *self)
{
	struct kbi_task *next;

	sim_spend(sim_costs.yield);
	kbi_run_look_if_due(vp);
	next = kbi_vp_turn(vp, self);
	if (next)
		return next;
	next = kbi_vp_pop(vp);
	if (!next)
		return self;
	kbi_vp_push(vp, self, false);
	return next;
}

/* Does what kbi_wait_sleep_on does. */
static struct kbi_task *after_sleep(struct kbi_vp *vp, struct sim_thread *s)
{
	struct kbi_task *self = &s->t.task, *to = s->to;

	s->to = NULL;
	if (!to)
		kbi_run_look_if_due(vp);
	if (!a_zero8_rlx(&self->permit) && a_xchg_acq(&self->permit, 0)) {
		if (to)
			kbi_vp_push(vp, to, true);
		return self;
	}
	a_store_rel(&self->state, vp->waiting_here);
	return to ? to : kbi_vp_pop(vp);
}

/* Does what core/thread does: a joiner that waits here goes on at once. */
static struct kbi_task *after_end(struct kbi_vp *vp, struct sim_thread *s)
{
	struct kbi_task *joiner;

	sim_spend(sim_costs.end);
	r.stacks--;
	s->ended++;
	joiner = a_load_rlx(&s->t.join);
	if (!joiner || a_load_acq(&joiner->state) != vp->waiting_here)
		joiner = a_xchg_acqrel(&s->t.join, (void *)ENDED);
	else
		a_store_rel(&s->t.join, (void *)ENDED);
	a_store_rlx(&s->t.task.state, KBI_STATE(KBI_TASK_DONE, vp->id));
	if (joiner && a_load_acq(&joiner->state) == vp->waiting_here && !kbi_run_is_others_turn(vp)) {
		kbi_domain_claim(vp, joiner, KBI_WAKE_PERMIT);
		return joiner;
	}
	if (joiner)
		kbi_domain_wake(vp, joiner, kbi_run_joiner_is_next(vp));
	return kbi_steal_request_at_end(vp, kbi_run_next(vp));
}

static struct kbi_task *one_turn(struct kbi_vp *vp, struct kbi_task *t)
{
	struct sim_thread *s = (struct sim_thread *)t;

	enter(vp, s);
	switch (s->turn(vp, s)) {
	case SIM_YIELD:
		return after_yield(vp, t);
	case SIM_END:
		return after_end(vp, s);
	default:
		return after_sleep(vp, s);
	}
}

/* Takes the place of the function in core/run. */
void kbi_run_task(struct kbi_vp *vp, struct kbi_task *t)
{
	r.since[vp->id] = sim_clock() + 1;
	while (t)
		t = one_turn(vp, t);
	vp->cur = NULL;
	r.busy += sim_clock() + 1 - r.since[vp->id];
	r.since[vp->id] = 0;
}

/* ---- what threads do ------------------------------------------------------------------------- */

void sim_create(struct kbi_vp *vp, struct sim_thread *s,
	enum sim_turn (*turn)(struct kbi_vp *, struct sim_thread *), int bound)
{
	sim_spend(sim_costs.create);
	s->turn = turn;
	s->at = (int32_t)vp->id;
	s->started = false;
	a_store_rlx(&s->t.join, NULL);
	a_store_rlx(&s->t.task.flags, KBI_TASK_NOT_STARTED);
	/* far_value stays: in channels messages may have come already */
	s->cell = (struct kbi_cell){ .owner = &s->t.task, .far_value = s->cell.far_value };
	if (bound < 0) {
		kbi_vp_push(vp, &s->t.task, false);
		return;
	}
	kbi_task_set(&s->t.task, KBI_TASK_BOUND);
	s->t.bound = (uint16_t)bound;
	s->cell.home = (uint32_t)bound + 1;
	if ((unsigned)bound == vp->id)
		kbi_vp_push(vp, &s->t.task, false);
	else
		kbi_vp_send(kbi_vps[bound], &s->t.task);
}

void sim_pause(struct kbi_vp *vp, struct sim_thread *self, uint64_t ns)
{
	kbi_deadline_arm(vp, &self->t, &self->rest, kbi_sys_now() + ns);
}

bool sim_join(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *other,
	enum sim_turn *how)
{
	struct kbi_task *o = &other->t.task;
	void *old = a_load_acq(&other->t.join);

	*how = SIM_SLEEP;
	if (!old)
		a_cas_acqrel(&other->t.join, &old, &self->t.task);
	if (old == (void *)ENDED)
		return true;
	/* `other` has not run yet and is here: now it runs */
	if (!other->started && a_load_acq(&o->state) == vp->ready_here &&
		!kbi_task_is(o, KBI_TASK_BOUND) && kbi_vp_take(vp, o)) {
		self->to = o;
		*how = SIM_TO;
	}
	return false;
}

void sim_work(struct kbi_vp *vp, uint64_t ps)
{
	while (ps) {
		ps = sim_compute(ps);
		/* the tick's handler, which does not switch */
		if (sim_signalled())
			kbi_vp_exchange(vp, kbi_vp_is_asked(vp) ? KBI_POLL_ASKED : KBI_POLL_TICK);
	}
}

void sim_notify(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *to, uint64_t value)
{
	sim_spend(sim_costs.hop);
	kbi_np_enter(&self->t.task);
	if (kbi_wait_deliver_here(vp, &to->cell, value))
		kbi_np_leave(&self->t.task);
	else
		kbi_wait_deliver_slow(&to->cell, value, &self->t.task);
}

enum { NOT_WAITING, HANDED, LOOKING };

/* Does what sync/event does. */
bool sim_await(struct sim_thread *self, uint64_t *value)
{
	struct kbi_task *t = &self->t.task;
	kb_event_t *ev = (kb_event_t *)&self->cell;
	uint32_t was = self->phase;

	self->phase = NOT_WAITING;
	if (was == HANDED && !t->awaits) {
		*value = a_load_rlx(&self->cell.value);
		return true;
	}
	if (was == NOT_WAITING && !kbi_task_is(t, KBI_TASK_MAIL) && a_zero32_rlx(&self->cell.far)) {
		t->awaits = &self->cell;
		self->phase = HANDED;
		return false;
	}
	t->awaits = NULL;
	if (kbi_event_pending(ev, t)) {
		*value = kbi_event_take(ev, t);
		return true;
	}
	self->phase = LOOKING;
	return false;
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* Does what core/boot does. */
static int make_vp(struct kbi_vp *vp, unsigned id, struct kbi_sched_vp *s,
	const struct sim_setup *setup)
{
	const struct kbi_sched *sched = setup->sched;

	s->id = id;
	s->nvps = setup->vps;
	kbi_vp_init(vp, id, s, sched);
	r.worker[id].vp = vp;
	return kbi_board_init(&vp->board, id, setup->vps, (setup->threads + 63) / 64 * 64);
}

static void *must(void *p)
{
	if (!p) {
		fputs("sim: no memory\n", stderr);
		exit(2);
	}
	return p;
}

static void make_vps(const struct sim_setup *setup)
{
	unsigned n = setup->vps;
	struct kbi_sched_vp *s = must(kbi_sys_map(n * sizeof *s));
	struct kbi_vp *vps = must(kbi_sys_map(n * sizeof *vps));

	kbi_vps = must(kbi_sys_map(n * sizeof *kbi_vps));
	kbi_vp_n = n;
	kbi_board_setup((setup->threads + 63) / 64 * 64);
	for (unsigned i = 0; i < n; i++) {
		kbi_vps[i] = &vps[i];
		s[i].all = s;
		if (make_vp(&vps[i], i, &s[i], setup))
			must(NULL);
	}
	if (setup->sched->init(s, n, kbi_options.capacity, kbi_options.lb2_lock))
		must(NULL);
}

static void body(unsigned i)
{
	/* processors do not start in step */
	sim_spend(r.random % (1000 + i) * 1000);
	kbi_agent_run(&r.worker[i]);
}

int sim_simulate(const struct sim_setup *setup)
{
	struct sim_thread *first;

	r.random = setup->seed * 2 + 1;
	for (unsigned i = 0; i < 8; i++)
		sim_random();
	r.thread = must(kbi_sys_map(setup->threads * sizeof *r.thread));
	r.since = must(calloc(setup->vps, sizeof *r.since));
	r.fetched = must(calloc(setup->vps, sizeof *r.fetched));
	r.first_at = must(calloc(setup->threads + 1, sizeof *r.first_at));
	r.worker = must(kbi_sys_map(setup->vps * sizeof *r.worker));
	kbi_stack_slots = must(kbi_sys_map((setup->vps + 1) * sizeof *kbi_stack_slots));
	make_vps(setup);
	for (uint32_t i = 0; i < setup->threads; i++) {
		r.thread[i].t.task.index = r.thread[i].id = i;
		r.thread[i].t.task.ctx.sp = &r.thread[i];
	}
	first = &r.thread[0];
	first->turn = setup->main;
	a_store_rlx(&first->t.task.state, kbi_vps[0]->ready_here);
	kbi_vp_enqueue(kbi_vps[0], &first->t.task, false);
	return sim_run(setup->vps, body);
}
