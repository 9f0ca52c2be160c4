/* core/solo.h - threads run one at a time: one virtual processor is awake, and no other kernel thread uses the
 * program's objects. Then what elsewhere needs an atomic read-modify-write is a load and a store. Why, and what it
 * brings: doc/why/posix-fast-path.md.
 *
 * A word says which VPs are awake, a bit each; one that finds its own bit alone there is alone. A VP takes its bit away
 * before it sleeps in the kernel and puts it back before it runs a thread again: then it waits until whoever was alone
 * is outside its section. With one VP that begins at boot. It is over for good when another kernel thread may come to
 * use an object: who starts one of ours, and each foreign one before its first use, calls kbi_solo_end, which waits, too.
 * One that only wakes threads uses none: permits, boards and what a VP sleeps on are changed by atomic operations always.
 *
 * A section (enter ... leave) is some ten instructions of one thread: it does not switch, call or wait, and the
 * tick leaves it alone like np > 0. Not for what a signal handler may use, too. Model: model/solo.pml.
 * Callers: boot, agent, foreign, handoff, thread, preempt, sync. */
#ifndef KBI_SOLO_H
#define KBI_SOLO_H

#include "core/vp.h"

struct kbi_solo {
	a64 awake;    /* bit n: VP n may run threads; the highest one: it is over for good, or never was to be */
	a32 busy;     /* a VP is inside a section; written by the one that is alone */
	a32 settling; /* VPs that wait until nobody is inside */
	a32 ended;    /* it is over and nobody is inside, or never was to be */
	a32 has_barrier; /* 1: kbi_solo_barrier is quick. Constant once VPs run */
};
extern KBI_HIDDEN struct kbi_solo kbi_solo;

enum { KBI_SOLO_VPS = 63 }; /* with more it never is */

/* true: inside a section. self: kbi_self_raw(), NULL on a kernel thread that has not used Kochab yet.
 * First a look, so that nothing is written where it does not hold. Then the VP stores `busy` and looks again; who
 * ends it changes the word, makes the VP's processor pass a full fence (membarrier), and loads `busy`: one of the two
 * sees the other. acquire: partner is the release in kbi_solo_park; what was done on the VP that sleeps now is seen.
 * A thread that the tick moves meanwhile finds two VPs awake, its old one and the one that it runs on. */
static inline bool kbi_solo_enter(const struct kbi_task *self)
{
	const struct kbi_vp *vp;

	if (kbi_unlikely(!self || !(vp = self->vp)) || a_load_acq(&kbi_solo.awake) != vp->solo)
		return false;
	a_store_rlx(&kbi_solo.busy, 1);
	kbi_compiler_barrier();
	if (kbi_likely(a_load_acq(&kbi_solo.awake) == vp->solo))
		return true;
	a_store_rlx(&kbi_solo.busy, 0);
	return false;
}

/* release: partner is the acquire in settle */
static inline void kbi_solo_leave(void)
{
	a_store_rel(&kbi_solo.busy, 0);
}

/* At boot, before there is a second kernel thread. */
void kbi_solo_begin(unsigned vps);
/* By a process that is to be a virtual processor. */
void kbi_solo_joins(void);
/* Has this process no other kernel thread? */
bool kbi_solo_is_only_one(void);
/* In the child of fork, where the caller is a kernel thread and no VP. */
void kbi_solo_after_fork(void);
/* Each VP's processor passes a full fence. */
void kbi_solo_barrier(void);
/* Any kernel thread, also in a signal handler, not inside a section. Returns when it has ended. */
void kbi_solo_end_slow(void);

static inline void kbi_solo_end(void)
{
	/* acquire: partner is the release in kbi_solo_end_slow */
	if (kbi_unlikely(!a_load_acq(&kbi_solo.ended)))
		kbi_solo_end_slow();
}

/* vp's agent: no thread runs on it from here on; may be said again. Before one runs: */
void kbi_solo_park(struct kbi_vp *vp);
void kbi_solo_unpark_slow(struct kbi_vp *vp);

static inline void kbi_solo_unpark(struct kbi_vp *vp)
{
	if (vp->parked)
		kbi_solo_unpark_slow(vp);
}

#endif
