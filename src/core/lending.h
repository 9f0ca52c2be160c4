/* core/lending.h - takes VPs that are lent (core/handoff): sysmon does, for an idle worker,
 * when the call lasts; or a thread that comes back from its own call, for its kernel thread.
 * Callers: handoff, and sysmon. Calls worker_pool, worker_maker. */
#ifndef KBI_LENDING_H
#define KBI_LENDING_H

#include "core/vp.h"
#include "core/worker.h"

/* Values of vp->lent. TAKEN: it has been taken. Else a number that was never there before, and
 * below it the lender's index in kbi_workers; 0: it is not lent. */
#define KBI_LENDING_TAKEN ((uint64_t)1 << 63)
enum { KBI_LENDING_INDEX_BITS = 16 };

/* The number of threads whose VP was taken or given. */
extern KBI_HIDDEN a32 kbi_lending_away;

/* Gives vp, which the caller holds and no thread runs on, to the idle worker. */
void kbi_lending_give(struct kbi_vp *vp, struct kbi_worker *idle);
/* Wins vp, if it is lent, for a thread that has lost its VP and comes back: vp is then the caller's
 * and no thread runs on it. Returns false if vp is not lent, or the call was over in time. */
bool kbi_lending_win(struct kbi_vp *vp);
/* Returns true if a kernel thread of ours is on its way to the pool. */
bool kbi_lending_one_comes(void);
/* Asks for an idle worker, because none waits. */
void kbi_lending_need_worker(void);
/* Prints, once, that no more can be had. */
void kbi_lending_say_none(void);
/* Sets up sysmon's part. Once, at start. */
void kbi_lending_setup(void);

#endif
