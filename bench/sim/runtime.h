/* bench/sim/runtime.h - Kochab on the simulated machine. The schedulers, sched/board,
 * core/vp, core/domain, core/agent, core/run and the waiting of events are the real ones;
 * threads are not: here a thread is a function that is called at each of its turns and returns
 * how the turn has ended. Switching, creating and ending cost what the table says.
 * Callers: work.c, main.c. */
#ifndef KBI_SIM_RUNTIME_H
#define KBI_SIM_RUNTIME_H

#include "core/deadline.h"
#include "core/wait.h"
#include "machine.h"

enum sim_turn {
	SIM_YIELD, /* it goes behind the ready threads */
	/* it sleeps until a wake-up; it has looked before that there is nothing to wait for */
	SIM_SLEEP,
	SIM_END,
	SIM_TO,    /* it sleeps, and `to`, which it has taken, runs at once */
};

struct sim_thread {
	struct kb_thread t; /* first */
	struct kbi_cell cell;
	struct kbi_rest rest;
	enum sim_turn (*turn)(struct kbi_vp *vp, struct sim_thread *self);
	struct kbi_task *to;
	int32_t at;         /* the processor that it was on last */
	uint32_t ended;     /* how often it has ended */
	bool started;
	/* written by the program */
	uint32_t id, phase, n;
	uint64_t value, left;
};

struct sim_setup {
	const struct kbi_sched *sched;
	unsigned vps;
	uint32_t threads;   /* at most */
	uint64_t seed;
	enum sim_turn (*main)(struct kbi_vp *vp, struct sim_thread *self);
};

/* Simulates until main has ended. Returns 0, or -1: all processors sleep for good. */
int sim_simulate(const struct sim_setup *s);

/* Returns the i-th thread of this run. */
struct sim_thread *sim_thread(uint32_t i);
/* Returns a pseudo-random number of this run. */
uint64_t sim_random(void);
/* Returns the time that all processors have run threads until now, ps. */
uint64_t sim_busy(void);
/* Returns the number of tasks that schedulers have given away. */
uint64_t sim_given(void);

/* ---- what threads do; on vp ------------------------------------------------------------------ */

void sim_create(struct kbi_vp *vp, struct sim_thread *s,
	enum sim_turn (*turn)(struct kbi_vp *, struct sim_thread *), int bound);
/* Arms a wait for ns; the caller then returns SIM_SLEEP. */
void sim_pause(struct kbi_vp *vp, struct sim_thread *self, uint64_t ns);
/* Returns true if `other` has ended. If false, the caller returns *how, and asks again at its
 * next turn. */
bool sim_join(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *other,
	enum sim_turn *how);
/* Computes; ticks may come in between. */
void sim_work(struct kbi_vp *vp, uint64_t ps);
/* An event. sim_notify notifies. sim_await returns true: *value is there; false: the caller
 * returns SIM_SLEEP and calls it again. */
void sim_notify(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *to, uint64_t value);
bool sim_await(struct sim_thread *self, uint64_t *value);

#endif
