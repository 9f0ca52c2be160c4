/* bench/sim/runtime.h - Kochab on the simulated machine: core/sched_*, core/board, core/vp, core/domain, core/agent,
 * core/run and the waiting of events as they are; threads are not: a thread here is a function that is called at each
 * of its turns and says how the turn has ended. Switching, creating and ending cost what the table says. */
#ifndef KBI_SIM_RUNTIME_H
#define KBI_SIM_RUNTIME_H

#include "core/deadline.h"
#include "core/wait.h"
#include "machine.h"

enum sim_turn {
	SIM_YIELD, /* it goes behind the others */
	SIM_SLEEP, /* until a wake-up; it was looked before that there is nothing to wait for */
	SIM_END,
	SIM_TO,    /* sleeps, and `to` runs at once, which it has taken */
};

struct sim_thread {
	struct kb_thread t; /* first */
	struct kbi_cell cell;
	struct kbi_rest rest;
	enum sim_turn (*turn)(struct kbi_vp *vp, struct sim_thread *self);
	struct kbi_task *to;
	int32_t at;         /* processor it was last on */
	uint32_t ended;     /* how often */
	bool started;
	/* the program's */
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

/* Simulates until main has ended. 0, or -1: everybody sleeps for good. */
int sim_simulate(const struct sim_setup *s);

/* The i-th thread of this run. */
struct sim_thread *sim_thread(uint32_t i);
/* A pseudo-random number of this run. */
uint64_t sim_random(void);
/* Time a processor has run threads until now, ps; of all of them. */
uint64_t sim_busy(void);
/* Tasks that schedulers have given away. */
uint64_t sim_given(void);

/* ---- what threads do; on vp ---- */

void sim_create(struct kbi_vp *vp, struct sim_thread *s, enum sim_turn (*turn)(struct kbi_vp *, struct sim_thread *),
		int bound);
/* Waits for ns: then return SIM_SLEEP. */
void sim_pause(struct kbi_vp *vp, struct sim_thread *self, uint64_t ns);
/* True: other has ended. False: return what is in *how, and ask again at the next turn. */
bool sim_join(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *other, enum sim_turn *how);
/* Computes; ticks come in between. */
void sim_work(struct kbi_vp *vp, uint64_t ps);
/* An event: notify; and wait: true: *value is there; false: return SIM_SLEEP and call it again. */
void sim_notify(struct kbi_vp *vp, struct sim_thread *self, struct sim_thread *to, uint64_t value);
bool sim_await(struct sim_thread *self, uint64_t *value);

#endif
