/* bench/sim/work.h - the programs that are simulated, and the figures that they report. Callers:
 * main.c. */
#ifndef KBI_SIM_WORK_H
#define KBI_SIM_WORK_H

#include "os/sys.h"
#include "runtime.h"

enum { SIM_FIGURES = 8 };

/* Parameters of a program; 0: its default. */
struct sim_case {
	uint32_t threads, rounds;
	bool spread;       /* ring: neighbours on different processors */
	uint64_t turn_ps;  /* distribute: cost of a turn beside the yield */
	bool asleep;       /* distribute: all processors but the first sleep at first, and are woken */
	/* ring: the kernel takes the processor away once for this long, before the time is taken */
	uint64_t pause_ps;
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
/* NULL, or the error in the work done: a thread has not ended, or has ended twice. */
extern const char *sim_wrong;

#endif
