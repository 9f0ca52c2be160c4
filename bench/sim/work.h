/* bench/sim/work.h - the programs that are simulated, and what they report. */
#ifndef KBI_SIM_WORK_H
#define KBI_SIM_WORK_H

#include "os/sys.h"
#include "runtime.h"

enum { SIM_FIGURES = 8 };

/* What a program is asked; 0: its default. */
struct sim_case {
	uint32_t threads, rounds;
	bool spread;       /* ring: neighbours on different processors */
	uint64_t turn_ps;  /* distribute: what a turn costs beside the yield */
	bool asleep;       /* distribute: the other processors sleep at first, and are woken */
	uint64_t pause_ps; /* ring: so long the kernel takes the processor away once, before the time is taken */
	uint64_t service_ns; /* skew: mean service time */
};

struct sim_figure {
	const char *name, *unit;
	double value;
};

struct sim_work {
	const char *name, *question;
	uint32_t threads, rounds;
	enum sim_turn (*main)(struct kbi_vp *vp, struct sim_thread *self);
};

extern const struct sim_work sim_works[]; /* ends with a row without a name */
extern struct sim_case sim_case;
extern struct sim_figure sim_figures[SIM_FIGURES];
extern unsigned sim_figure_n;
/* 0, or what was wrong with the work that was done: a thread that has not ended, or twice. */
extern const char *sim_wrong;

#endif
