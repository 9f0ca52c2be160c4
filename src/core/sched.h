/* core/sched.h - the scheduler interface: five functions over data, no kernel, no VP. The same code runs
 * under the simulator. A scheduler moves ready tasks between VPs; running, waiting and waking are not its
 * business. Chosen at run time (option sched).
 * Callers: core/vp (all functions run on the owner VP `s`, never two at once for one s; functions of
 * different s run in parallel). Calls: base only. Never switches, never blocks, never allocates after init. */
#ifndef KBI_SCHED_H
#define KBI_SCHED_H

#include "core/task.h"

/* What a VP is doing, published by it, read by others. */
enum kbi_sched_idle {
	KBI_IDLE_BUSY,     /* runs threads */
	KBI_IDLE_POLLING,  /* nothing ready; its agent polls (will find a packet without help) */
	KBI_IDLE_SLEEPING, /* in the kernel: needs a wake */
};

enum kbi_sched_why {
	KBI_POLL_SWITCH, /* between two threads, every poll_every switches */
	KBI_POLL_PUSH,   /* a task was pushed while it is not alone and some VP is idle */
	KBI_POLL_IDLE,   /* nothing ready here; called again and again while polling */
	KBI_POLL_TICK,   /* from the tick: give away all that cannot run here now */
	/* only where private_ready: */
	KBI_POLL_ASKED,  /* from a tick that an idle VP has sent to have its share */
	KBI_POLL_WANTED, /* between two threads, when another VP has asked for its share */
	KBI_POLL_BURST,  /* many tasks are pushed in a row: those that got some of the first run them now */
};

/* A VP as schedulers see it. */
struct kbi_sched_vp {
	/* owner only */
	struct kbi_pq pq;      /* the Protect Queue */
	unsigned id, nvps;
	struct kbi_sched_vp *all; /* array of nvps, constant */
	void *priv;            /* the scheduler's own, set by init */
	uint64_t given, taken; /* tasks passed on and received: statistics */
	bool limited;          /* no more than `most` go to idle VPs at this poll; both written by core/vp */
	uint32_t most;
	/* written by the owner, read by any VP */
	a32 load KBI_ALIGNED(KBI_CACHE_LINE); /* tasks ready + running here, updated by poll */
	a32 idle;              /* enum kbi_sched_idle; written by core/vp */
	a32 hog;               /* 1: one thread has held this VP for a tick; it wants no more. By poll */
	/* any VP, read-modify-write, cold: on element 0 only */
	a32 idle_count KBI_ALIGNED(KBI_CACHE_LINE); /* all[0].idle_count: VPs not BUSY */
} KBI_ALIGNED(KBI_CACHE_LINE);

/* VPs that a scheduler function wants woken: it published work for them and saw SLEEPING after the fence. */
enum { KBI_SCHED_WAKES = 10 };
struct kbi_sched_wake {
	unsigned n;
	unsigned vp[KBI_SCHED_WAKES];
};

struct kbi_sched {
	const char *name;
	/* poll(POLL_SWITCH) is called every so many switches; LB3 to the letter: 1 */
	unsigned poll_every;
	/* A ready task of VP s is in s->pq and nowhere else until poll gives it away: push, pop and take may be
	 * NULL and core does them on s->pq in line. False: push may publish at once, so the pushed context must
	 * be complete (core pushes from `after`). */
	bool private_ready;

	/* 0 or ENOMEM. s: array of n, ids and nvps set. capacity: option (0 = automatic). lock: lb2's. */
	int (*init)(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock);
	void (*fini)(struct kbi_sched_vp *s, unsigned n);
	/* Ready task to s's queue; front: it should run next. State is READY(s) already. */
	void (*push)(struct kbi_sched_vp *s, struct kbi_task *t, bool front);
	/* Next task to run on s, or NULL. The caller makes it RUNNING. */
	struct kbi_task *(*pop)(struct kbi_sched_vp *s);
	/* Removes this READY(s) task from s's queue if that is possible and nobody else has it: true. */
	bool (*take)(struct kbi_sched_vp *s, struct kbi_task *t);
	/* Exchanges tasks with other VPs according to `why`; fills *wake. Returns how many tasks came in. Tasks
	 * bound to s (KBI_TASK_BOUND) are never given away. */
	unsigned (*poll)(struct kbi_sched_vp *s, enum kbi_sched_why why, struct kbi_sched_wake *wake);
	/* Ready tasks of s that are not in s->pq come there behind the others, in their order, up to `most`: for an order
	 * of core's own. NULL: there are none, or they are given away for good. */
	void (*gather)(struct kbi_sched_vp *s, unsigned most);
	/* Any VP, a hint: how many gather would find. NULL with gather. */
	unsigned (*outside)(const struct kbi_sched_vp *s);
	/* Any VP: tasks wait that were given to s and that only s can take. A hint. NULL: others can take all. */
	bool (*arrived)(const struct kbi_sched_vp *s);
};

extern KBI_HIDDEN const struct kbi_sched kbi_sched_rotator, kbi_sched_rotator_paper, kbi_sched_lb2, kbi_sched_steal;

/* By name, NULL if there is none; and the names, NULL-terminated. */
const struct kbi_sched *kbi_sched_find(const char *name);
extern KBI_HIDDEN const struct kbi_sched *const kbi_sched_table[];

/* Number of ready tasks in s's own queue as the owner sees it. */
static inline unsigned kbi_sched_ready(const struct kbi_sched_vp *s)
{
	return s->pq.n;
}

#endif
