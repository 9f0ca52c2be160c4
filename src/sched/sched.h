/* sched/sched.h - the scheduler interface: functions over data, without kernel and without VP, so
 * that the same code runs under the simulator. A scheduler moves ready tasks between VPs; it
 * does not run, wait or wake. The option sched chooses the scheduler at run time.
 * Callers: core/vp, on the owner VP `s`. Calls for one s never overlap; calls for different s
 * run in parallel. Calls: base only. Never switches, never blocks, allocates only in init. */
#ifndef KBI_SCHED_H
#define KBI_SCHED_H

#include "sched/task.h"

/* What a VP does. Written by the VP, read by any VP. */
enum kbi_sched_idle {
	KBI_IDLE_BUSY,     /* runs threads */
	KBI_IDLE_POLLING,  /* nothing ready; its agent polls and will find a packet without help */
	KBI_IDLE_SLEEPING, /* sleeps in the kernel: must be woken */
};

enum kbi_sched_why {
	KBI_POLL_SWITCH, /* between two threads, every poll_every switches */
	KBI_POLL_PUSH,   /* a task was pushed, it is not alone in the queue, and some VP is idle */
	KBI_POLL_IDLE,   /* nothing ready here; called again and again while polling */
	KBI_POLL_TICK,   /* the tick: give away all tasks that cannot run here now */
	/* the rest only if private_ready: */
	KBI_POLL_ASKED,  /* a tick that an idle VP has sent to get its share */
	KBI_POLL_WANTED, /* between two threads, after another VP has asked for its share */
	/* many tasks are pushed in a row: the VPs that got some of the first run them now */
	KBI_POLL_BURST,
};

/* A VP as schedulers see it. */
struct kbi_sched_vp {
	/* owner only */
	struct kbi_pq pq;      /* the Protect Queue */
	unsigned id, nvps;
	struct kbi_sched_vp *all; /* array of nvps, constant */
	void *priv;            /* the scheduler's own data, set by init */
	uint64_t given, taken; /* statistics: tasks given to and received from other VPs */
	bool limited; /* at most `most` tasks go to idle VPs at this poll; core/vp writes both */
	uint32_t most;
	/* written by the owner, read by any VP */
	a32 load KBI_ALIGNED(KBI_CACHE_LINE); /* tasks ready + running here, updated by poll */
	a32 idle;              /* enum kbi_sched_idle; written by core/vp */
	/* 1: one thread has held this VP for a tick, so the VP wants no more tasks; written by poll */
	a32 hog;
	/* any VP, read-modify-write, cold: on element 0 only */
	a32 idle_count KBI_ALIGNED(KBI_CACHE_LINE); /* all[0].idle_count: VPs not BUSY */
} KBI_ALIGNED(KBI_CACHE_LINE);

/* The VPs that a scheduler function wants woken: it has published work for them and has seen
 * SLEEPING after its fence. */
enum { KBI_SCHED_WAKES = 10 };
struct kbi_sched_wake {
	unsigned n;
	unsigned vp[KBI_SCHED_WAKES];
};

struct kbi_sched {
	const char *name;
	/* poll(POLL_SWITCH) is called every poll_every switches; LB3 to the letter: 1 */
	unsigned poll_every;
	/* True: a ready task of VP s is in s->pq and nowhere else until poll gives it away. Push,
	 * pop and take may be NULL; core then does them on s->pq in line. False: push may publish
	 * the task at once, so its context must be complete (core pushes from `after`). */
	bool private_ready;

	/* Returns 0 or ENOMEM. s: array of n, ids and nvps set. capacity: an option (0: automatic).
	 * lock: lb2's kind of lock. */
	int (*init)(struct kbi_sched_vp *s, unsigned n, unsigned capacity, unsigned lock);
	void (*fini)(struct kbi_sched_vp *s, unsigned n);
	/* Puts a ready task into s's queue; front: it should run next. Its state is READY(s)
	 * already. */
	void (*push)(struct kbi_sched_vp *s, struct kbi_task *t, bool front);
	/* Returns the next task to run on s, or NULL. The caller makes it RUNNING. */
	struct kbi_task *(*pop)(struct kbi_sched_vp *s);
	/* Removes this READY(s) task from s's queue. Returns false if another VP may have it. */
	bool (*take)(struct kbi_sched_vp *s, struct kbi_task *t);
	/* Exchanges tasks with other VPs according to `why`; fills *wake. Returns how many tasks
	 * came in. Tasks bound to s (KBI_TASK_BOUND) are never given away. */
	unsigned (*poll)(struct kbi_sched_vp *s, enum kbi_sched_why why, struct kbi_sched_wake *wake);
	/* Appends ready tasks of s that are outside s->pq to it, in their order, up to `most`: for
	 * an order that core chooses. NULL: no such tasks exist, or they are given away for good. */
	void (*gather)(struct kbi_sched_vp *s, unsigned most);
	/* Any VP, a hint: returns how many tasks gather would find. NULL if gather is NULL. */
	unsigned (*outside)(const struct kbi_sched_vp *s);
	/* Any VP, a hint: returns true if tasks wait that were given to s and that only s can take.
	 * NULL: any VP can take all tasks. */
	bool (*arrived)(const struct kbi_sched_vp *s);
};

extern KBI_HIDDEN const struct kbi_sched kbi_sched_rotator, kbi_sched_rotator_paper, kbi_sched_lb2,
	kbi_sched_steal;

/* Returns the scheduler of this name, NULL if there is none. The table ends with NULL. */
const struct kbi_sched *kbi_sched_find(const char *name);
extern KBI_HIDDEN const struct kbi_sched *const kbi_sched_table[];

/* Returns the number of ready tasks in s's Protect Queue, as its owner sees it. */
static inline unsigned kbi_sched_ready(const struct kbi_sched_vp *s)
{
	return s->pq.n;
}

/* Returns true if VP s has nothing to run. */
static inline bool kbi_sched_idles(const struct kbi_sched_vp *s)
{
	return a_load_rlx(&s->idle) != KBI_IDLE_BUSY;
}

/* Returns how many VPs except s have nothing to run. Relaxed and perhaps late: a hint. */
static inline unsigned kbi_sched_idle_others(const struct kbi_sched_vp *s)
{
	unsigned n = a_load_rlx(&s->all[0].idle_count), me = kbi_sched_idles(s);

	return n > me ? n - me : 0;
}

#endif
