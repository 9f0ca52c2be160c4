/* core/lending.h - VPs that are lent (core/handoff) are taken by the lookout, for a spare, when the call lasts, or by a
 * thread that comes back from its own call, for its kernel thread. Callers: handoff, the lookout. Calls spare, nursery. */
#ifndef KBI_LENDING_H
#define KBI_LENDING_H

#include "core/body.h"
#include "core/vp.h"

/* In vp->lent: it has been taken. Else a number that was never there before, and below it the lender's index in
 * kbi_spare_bodies; 0: it is not lent. */
#define KBI_LENDING_TAKEN ((uint64_t)1 << 63)
enum { KBI_LENDING_INDEX_BITS = 16 };

/* Threads whose VP was taken or given. */
extern KBI_HIDDEN a32 kbi_lending_away;

/* vp is the caller's, and no thread runs on it: it is the spare's from now on. */
void kbi_lending_give(struct kbi_vp *vp, struct kbi_body *spare);
/* By a thread that has lost its VP and comes back: vp, if that is lent, is the caller's, and no thread runs on it. False:
 * it is not lent, or the call was over in time. */
bool kbi_lending_win(struct kbi_vp *vp);
/* A kernel thread of ours is on its way to the pool. */
bool kbi_lending_one_comes(void);
/* A spare is wanted, and none waits. */
void kbi_lending_need_spare(void);
/* Says, once, that no more can be had. */
void kbi_lending_say_none(void);
/* The lookout's part. Once, at start. */
void kbi_lending_setup(void);

#endif
