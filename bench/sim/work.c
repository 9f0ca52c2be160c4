/* bench/sim/work.c - programs on simulated virtual processors. Thread 0 is main: it waits until
 * the remaining processors sleep, makes the remaining threads, takes the time and checks that
 * each of them has ended just once. Contract in work.h. */
#include "work.h"

#include <stdlib.h>

struct sim_case sim_case;
struct sim_figure sim_figures[SIM_FIGURES];
unsigned sim_figure_n;
const char *sim_wrong;

enum {
	QUIET = 20000000,  /* ns: all processors but main's sleep */
	TO_BEGIN = 100000, /* ns: and have come to their work */
	TO_SLEEP = 5000000,
	OFFERS = 32 /* turns of a processor between two offers of it to the kernel, as in the bench */
};
/* ps: an event that has not come for so long will not come */
#define PATIENCE 2000000000

static struct {
	uint64_t start, busy, first, most, shared, ran;
	uint32_t round;
	unsigned root;                    /* the processor that main stays on */
	a32 stop, go KBI_ALIGNED(64);
	uint32_t share, four_fifths, have[2]; /* processors that have so many */
	double idle;
	struct {
		a32 held KBI_ALIGNED(64); /* threads that have run here last */
		a32 go KBI_ALIGNED(64);   /* its thread waits for this */
		bool has[2];
		uint32_t turns;
	} at[KBI_MAX_VPS];
} w;

static void figure(const char *name, const char *unit, double value)
{
	if (sim_figure_n < SIM_FIGURES)
		sim_figures[sim_figure_n++] = (struct sim_figure){ name, unit, value };
}

static void begin(void)
{
	w.start = sim_clock();
	w.busy = sim_busy();
}

/* Returns the per cent of the processors' time from begin until now in which they ran no thread. */
static double idle(void)
{
	double all = (double)(sim_clock() - w.start) * kbi_vp_n;

	return 100 * (1 - (double)(sim_busy() - w.busy) / all);
}

static void create_all(struct kbi_vp *vp,
	enum sim_turn (*turn)(struct kbi_vp *, struct sim_thread *))
{
	for (uint32_t i = 1; i <= sim_case.threads; i++)
		sim_create(vp, sim_thread(i), turn, sim_case.spread ? (int)(i % kbi_vp_n) : -1);
}

/* Returns true if all have been joined. `n` is the next thread. */
static bool join_all(struct kbi_vp *vp, struct sim_thread *self, enum sim_turn *how)
{
	for (; self->n <= sim_case.threads; self->n++)
		if (!sim_join(vp, self, sim_thread(self->n), how))
			return false;
	return true;
}

/* Checks that each thread has ended once a round. */
static enum sim_turn over(uint32_t rounds)
{
	for (uint32_t i = 1; i <= sim_case.threads; i++)
		if (sim_thread(i)->ended != rounds)
			sim_wrong = sim_thread(i)->ended < rounds
				? "a thread has not ended" : "a thread has run twice";
	figure("given", "threads", (double)sim_given());
	sim_stop();
	return SIM_END;
}

/* ---- spawn: threads that return at once ------------------------------------------------------ */

static enum sim_turn returns(struct kbi_vp *vp, struct sim_thread *self)
{
	(void)vp;
	(void)self;
	return SIM_END;
}

enum { START, MAKE, JOIN };

/* Main's part of a load that makes all threads and joins them, again and again. make: work of
 * each round before the joins; the time is taken from round `warm` on. If it returns false, *how
 * says how main's turn ends, and main calls it again. */
static bool rounds(struct kbi_vp *vp, struct sim_thread *self, void (*make)(struct kbi_vp *),
	uint32_t warm, enum sim_turn *how)
{
	if (self->phase == START) {
		self->phase = MAKE;
		sim_pause(vp, self, QUIET);
		*how = SIM_SLEEP;
		return false;
	}
	for (; w.round < sim_case.rounds; w.round++) {
		if (self->phase == MAKE) {
			if (w.round == warm)
				begin();
			make(vp);
			self->phase = JOIN;
			self->n = 1;
		}
		if (!join_all(vp, self, how))
			return false;
		self->phase = MAKE;
	}
	return true;
}

static void make_spawn(struct kbi_vp *vp)
{
	create_all(vp, returns);
}

static enum sim_turn spawn_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (!rounds(vp, self, make_spawn, sim_case.rounds / 2, &how))
		return how;
	figure("create+join", "ns",
	       (double)(sim_clock() - w.start) / 1000 / sim_case.threads / (w.round - w.round / 2));
	figure("idle", "%", idle());
	return over(w.round);
}

/* ---- burst: threads of different lengths from one processor ---------------------------------- */

/* Nine in ten take half of the mean, one in ten 5.5 times as long. */
static enum sim_turn serves(struct kbi_vp *vp, struct sim_thread *self)
{
	sim_work(vp, self->left);
	return SIM_END;
}

static enum sim_turn skew_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (self->phase == START) {
		self->phase = MAKE;
		sim_pause(vp, self, QUIET);
		return SIM_SLEEP;
	}
	if (self->phase == MAKE) {
		for (uint32_t i = 1; i <= sim_case.threads; i++) {
			sim_thread(i)->left = sim_case.service_ns * (sim_random() % 10 ? 500 : 5500);
			self->value += sim_thread(i)->left;
		}
		self->phase = JOIN;
		self->n = 1;
		begin();
		create_all(vp, serves);
	}
	if (!join_all(vp, self, &how))
		return how;
	figure("makespan", "us", (double)(sim_clock() - w.start) / 1e6);
	figure("speedup", "x", (double)self->value / (double)(sim_clock() - w.start));
	figure("idle", "%", idle());
	return over(1);
}

/* ---- phases: threads that end and are created again and again, as in bench/radix.c ----------- */

/* Main does the serial part, a hundredth of the work; it has the first piece, too. */
static void make_phase(struct kbi_vp *vp)
{
	sim_work(vp, sim_case.threads * sim_case.service_ns * 10);
	for (uint32_t i = 1; i <= sim_case.threads; i++)
		sim_thread(i)->left = sim_case.service_ns * 1000;
	create_all(vp, serves);
	sim_work(vp, sim_case.service_ns * 1000);
}

/* The first phase is the warm-up. */
static enum sim_turn phases_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (sim_case.rounds < 2)
		sim_case.rounds = 2;
	if (!rounds(vp, self, make_phase, 1, &how))
		return how;
	/* ideal: the serial part, and the rest on all processors */
	double pieces = (double)(sim_case.threads + 1) / kbi_vp_n + (double)sim_case.threads / 100;
	double phase = (double)(sim_clock() - w.start) / 1000 / (w.round - 1);
	figure("phase", "us", phase / 1000);
	figure("more", "%", 100 * (phase / (pieces * (double)sim_case.service_ns) - 1));
	figure("idle", "%", idle());
	return over(w.round);
}

/* ---- distribute: as bench/distribute.c ----
 *
 * Beginning: one processor holds all threads, none of which has run. Each of the remaining
 * processors computes for a thread that is bound there until the clock starts, or sleeps with
 * it. Share: a thread that runs there finds 9/10 of the share; most: 4/5. Ran: so many have run
 * there last. */

static bool every(uint32_t least)
{
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&w.at[i].held) < least)
			return false;
	return true;
}

static void arrive(struct kbi_vp *vp)
{
	uint32_t held = a_add_rlx(&w.at[vp->id].held, 1) + 1;

	/* the look takes time: a second thread may have been first */
	if (held == 1 && !w.first && every(1) && !w.first)
		w.first = sim_clock();
	if (held >= w.share && !w.ran && every(w.share) && !w.ran) {
		w.ran = sim_clock();
		w.idle = idle();
	}
}

/* Notes whether vp's ready threads and the running thread are at least `least`. */
static void find(struct kbi_vp *vp, unsigned which, uint32_t ready, uint32_t least, uint64_t *all)
{
	bool has = ready + 1 >= least, *had = &w.at[vp->id].has[which];

	if (has == *had)
		return;
	*had = has;
	w.have[which] += has ? 1 : UINT32_MAX;
	if (w.have[which] == kbi_vp_n && !*all)
		*all = sim_clock();
}

/* `n` is the processor that the thread was counted on, plus 1. */
static enum sim_turn ready(struct kbi_vp *vp, struct sim_thread *self)
{
	uint32_t n;

	if (a_load_rlx(&w.stop))
		return SIM_END;
	n = kbi_vp_backlog(vp);
	find(vp, 0, n, w.four_fifths, &w.most);
	find(vp, 1, n, w.share, &w.shared);
	if (self->n != vp->id + 1) {
		if (self->n)
			a_sub_rlx(&w.at[self->n - 1].held, 1);
		self->n = vp->id + 1;
		arrive(vp);
	}
	if (++w.at[vp->id].turns % OFFERS == 0)
		sim_spend(sim_case.turn_ps * OFFERS);
	return SIM_YIELD;
}

/* Lets the threads of two processors go, which each let go two more, and so on, from main's
 * processor on: a thief may have taken main. */
static void let_go(unsigned vp)
{
	unsigned n = kbi_vp_n, at = (vp + n - w.root) % n;

	for (unsigned i = 2 * at + 1; i <= 2 * at + 2 && i < n; i++) {
		unsigned to = (w.root + i) % n;

		a_store_rlx(&w.at[to].go, 1);
		kbi_sys_futex_wake(&w.at[to].go, 1);
	}
}

static enum sim_turn holds(struct kbi_vp *vp, struct sim_thread *self)
{
	(void)self;
	if (!sim_case.asleep) {
		while (!a_load_rlx(&w.go))
			sim_spend(50000);
		return SIM_END;
	}
	while (!a_load_rlx(&w.at[vp->id].go))
		kbi_sys_futex_wait(&w.at[vp->id].go, 0, NULL);
	let_go(vp->id);
	return SIM_END;
}

/* Keeps main where it is, and keeps the remaining processors from getting anything. */
static void hold_up(struct kbi_vp *vp)
{
	for (unsigned i = 1; i < kbi_vp_n; i++)
		sim_create(vp, sim_thread(sim_case.threads + i), holds, (int)((vp->id + i) % kbi_vp_n));
}

static void stay(struct kbi_vp *vp, struct sim_thread *self)
{
	kbi_task_set(&self->t.task, KBI_TASK_BOUND);
	self->t.bound = (uint16_t)vp->id;
	w.root = vp->id;
}

static void since_start(const char *name, uint64_t when)
{
	if (when)
		figure(name, "us", (double)(when - w.start) / 1e6);
}

/* An event that has not happened has no figure. */
static void spread(void)
{
	since_start("most", w.most);
	since_start("share", w.shared);
	since_start("first", w.first);
	since_start("ran", w.ran);
	figure("idle", "%", w.idle);
}

static enum sim_turn distribute_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	switch (self->phase++) {
	case START:
		stay(vp, self);
		sim_pause(vp, self, QUIET);
		return SIM_SLEEP;
	case MAKE:
		hold_up(vp);
		sim_pause(vp, self, sim_case.asleep ? TO_SLEEP : TO_BEGIN);
		return SIM_SLEEP;
	case JOIN:
		w.share = sim_case.threads / kbi_vp_n * 9 / 10;
		w.four_fifths = sim_case.threads / kbi_vp_n * 4 / 5;
		create_all(vp, ready);
		begin();
		a_store_rlx(&w.go, 1);
		if (sim_case.asleep)
			let_go(vp->id);
		/* fall through */
	default:
		if (!w.ran && sim_clock() < w.start + PATIENCE) {
			sim_pause(vp, self, 100000);
			return SIM_SLEEP;
		}
	}
	if (!self->n) {
		self->n = 1;
		a_store_rlx(&w.stop, 1);
		spread();
	}
	if (!join_all(vp, self, &how))
		return how;
	return over(1);
}

/* ---- yield: threads only yield --------------------------------------------------------------- */

static enum sim_turn yields(struct kbi_vp *vp, struct sim_thread *self)
{
	(void)vp;
	return self->n++ < sim_case.rounds ? SIM_YIELD : SIM_END;
}

static enum sim_turn yield_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (self->phase == START) {
		self->phase = JOIN;
		self->n = 1;
		begin();
		create_all(vp, yields);
	}
	if (!join_all(vp, self, &how))
		return how;
	figure("yield", "ns",
	       (double)(sim_clock() - w.start) / 1000 / sim_case.threads / sim_case.rounds);
	figure("idle", "%", idle());
	return over(1);
}

/* ---- ring: a message goes round -------------------------------------------------------------- */

/* `value`: the hop that it brings. The last hop stops all threads; each passes that on. */
static enum sim_turn sits(struct kbi_vp *vp, struct sim_thread *self)
{
	struct sim_thread *next = sim_thread(self->id % sim_case.threads + 1);
	uint64_t hops = (uint64_t)sim_case.threads * sim_case.rounds, got;

	while (sim_await(self, &got)) {
		if (got == hops / 4)
			sim_spend(sim_case.pause_ps);
		if (got == hops / 2)
			begin();
		if (got == hops) {
			figure("one-way", "ns",
			       (double)(sim_clock() - w.start) / 1000 / (double)(hops - hops / 2));
			figure("idle", "%", idle());
		}
		if (got < hops + sim_case.threads - 1)
			sim_notify(vp, self, next, got + 1);
		if (got >= hops)
			return SIM_END;
	}
	return SIM_SLEEP;
}

static enum sim_turn ring_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (!self->n) {
		create_all(vp, sits);
		self->n = 1;
		sim_notify(vp, self, sim_thread(1), 1);
	}
	if (!join_all(vp, self, &how))
		return how;
	return over(1);
}

/* ---- channels: in each round every thread sends to some thread and receives ------------------ */

static uint32_t stride(uint32_t round)
{
	uint64_t x = (round + 1) * 0x9E3779B97F4A7C15u;

	return (uint32_t)((x ^ x >> 29) % (sim_case.threads - 1)) + 1;
}

/* `n`: rounds sent; `value`: messages taken; cell.far_value counts the messages that have come:
 * the semaphore of a channel. */
static enum sim_turn talks(struct kbi_vp *vp, struct sim_thread *self)
{
	for (;;) {
		if (self->n == self->value) {
			uint32_t to;

			if (self->n == sim_case.rounds)
				return SIM_END;
			to = (self->id - 1 + stride(self->n++)) % sim_case.threads + 1;
			sim_spend(sim_costs.hop);
			a_add_acqrel(&sim_thread(to)->cell.far_value, 1);
			kbi_domain_wake(vp, &sim_thread(to)->t.task, false);
		}
		if (a_load_acq(&self->cell.far_value) <= self->value)
			return SIM_SLEEP;
		self->value++;
	}
}

static enum sim_turn channels_main(struct kbi_vp *vp, struct sim_thread *self)
{
	enum sim_turn how;

	if (self->phase == START) {
		self->phase = MAKE;
		sim_pause(vp, self, QUIET);
		return SIM_SLEEP;
	}
	if (self->phase == MAKE) {
		self->phase = JOIN;
		self->n = 1;
		begin();
		create_all(vp, talks);
	}
	if (!join_all(vp, self, &how))
		return how;
	figure("message", "ns",
	       (double)(sim_clock() - w.start) / 1000 / sim_case.threads / sim_case.rounds);
	figure("idle", "%", idle());
	return over(1);
}

const struct sim_work sim_works[] = {
	{ "ring", "one-way latency of a message that goes round", 100, 200, ring_main },
	{ "distribute", "from one processor with all threads to each with its share", 10000, 1,
		distribute_main },
	{ "skew", "a burst of threads of different lengths from one processor", 2000, 1, skew_main },
	{ "phases", "threads that end and are created for each phase of a program", 63, 20,
		phases_main },
	{ "spawn", "create threads that return, join them", 2000, 6, spawn_main },
	{ "yield", "a thread's turn", 1000, 200, yield_main },
	{ "channels", "every thread to every other one", 256, 100, channels_main },
	{ 0 },
};
