/* core/worker_pool.h - the life of a worker, a kernel thread that runs a VP. It runs the VP until
 * a thread blocks on it and the VP is given away; then, when that thread has gone on elsewhere, it
 * waits as an idle worker until it gets a VP again. Idle workers end after a long wait
 * (option spare_ms).
 * Callers: boot, worker_thread, handoff, lending, worker_maker, dump, io, posix. Calls agent. */
#ifndef KBI_WORKER_POOL_H
#define KBI_WORKER_POOL_H

#include "core/vp.h"
#include "core/worker.h"

/* Makes room for the workers of n VPs and the idle workers that the options allow. Returns 0 or
 * ENOMEM. Once, at start. */
int kbi_worker_pool_setup(unsigned n);
/* Returns a record for a new kernel thread; NULL: as many run as may. fresh: it is to be an idle
 * worker. */
struct kbi_worker *kbi_worker_pool_record(bool fresh);
/* Gives back the record of a worker whose kernel thread could not be started, or ends. */
void kbi_worker_pool_drop(struct kbi_worker *b);
/* Takes an idle worker, which is then the caller's; NULL: there is none. */
struct kbi_worker *kbi_worker_pool_take(void);
/* Marks worker b, called by the thread on it. kept: b becomes the thread's own kernel thread for
 * good; from then on it serves no other thread and does not count among the workers that may run.
 * false: undoes that. */
void kbi_worker_pool_keep(struct kbi_worker *b, bool kept);
/* Puts an idle worker back into the pool. */
void kbi_worker_pool_put(struct kbi_worker *idle);
/* Gives vp, which the caller holds, to the idle worker; vp is the worker's from now on. */
void kbi_worker_pool_give(struct kbi_worker *idle, struct kbi_vp *vp);
/* Runs the worker's life on its own stack with its own TLS; returns when its kernel thread may
 * end. */
void kbi_worker_life(struct kbi_worker *me);

/* Returns true if fewer idle workers wait or are on their way than are kept ready, and more may
 * run. */
bool kbi_worker_pool_is_low(void);
/* Returns true if more workers may run than do. */
bool kbi_worker_pool_may_grow(void);
/* Returns true if the idle workers that wait, are on their way, or may still be made are not more
 * than the VPs. */
bool kbi_worker_pool_is_scarce(void);
/* Set to 1 by kbi_worker_pool_tell, which also wakes the sleeper at this word (core/worker_maker):
 * idle workers are low. */
extern KBI_HIDDEN a32 kbi_worker_pool_low;
/* Sets kbi_worker_pool_low and wakes the worker maker. */
void kbi_worker_pool_tell(void);
/* Empties the pool in the child of fork, where those kernel threads do not exist. */
void kbi_worker_pool_after_fork(void);

struct kbi_worker_pool_counts {
	unsigned workers;     /* kernel threads that run */
	unsigned idle;        /* of them: idle workers that wait */
	unsigned most;        /* the most workers at a time */
	uint64_t given;       /* how often an idle worker got a VP */
};
struct kbi_worker_pool_counts kbi_worker_pool_counts(void);
/* Returns the kernel thread number of a waiting idle worker, for tests that need a sleeping one; 0:
 * there is none. */
int kbi_worker_pool_idle_tid(void);

/* Called on a worker that has just become vp's; NULL: nothing. The drop-in sets its signal mask
 * there. */
extern void (*kbi_worker_adopted)(struct kbi_vp *vp);

#endif
