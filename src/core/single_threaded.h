/* core/single_threaded.h - threads run one at a time: one virtual processor is awake, and no
 * further kernel thread uses the program's objects. Then a load and a store replace each atomic
 * read-modify-write. Why, and what it brings: doc/why/posix-fast-path.md.
 *
 * A word has a bit for each VP that is awake; a VP that finds only its own bit is alone. A VP
 * clears its bit before it sleeps in the kernel and sets it before it runs a thread again: then it
 * waits until the VP that was alone is outside its section. With one VP the state begins at boot.
 * It ends for good when another kernel thread may use an object: the code that starts a kernel
 * thread of ours, and each foreign kernel thread before its first use, calls
 * kbi_single_threaded_end, which waits, too. A kernel thread that only wakes threads uses no
 * object: permits, boards and the words that a VP sleeps on are always changed by atomic
 * operations.
 *
 * A section (enter ... leave) is some ten instructions of one thread: it does not switch, call
 * or wait, and the tick leaves it alone as inside np brackets. Not for data that a signal
 * handler may use, too. Model: model/single_threaded.pml.
 * Callers: boot, agent, foreign, handoff, thread, preempt, sync, io/hold. */
#ifndef KBI_SINGLE_THREADED_H
#define KBI_SINGLE_THREADED_H

#include "core/vp.h"

struct kbi_single_threaded {
	/* bit n: VP n may run threads; the highest bit: it has ended for good, or was never to begin */
	a64 awake;
	a32 busy;     /* 1: a VP is inside a section; written by the VP that is alone */
	a32 settling; /* VPs that wait until no VP is inside a section */
	a32 ended;    /* 1: it has ended and no VP is inside a section, or it was never to begin */
	a32 has_barrier; /* 1: kbi_single_threaded_barrier is quick. Constant once VPs run */
};
extern KBI_HIDDEN struct kbi_single_threaded kbi_single_threaded;

enum { KBI_SINGLE_THREADED_VPS = 63 }; /* with more VPs it never begins */

/* Enters a section if this VP is alone; returns true then. self: kbi_self_raw(), NULL on a kernel
 * thread that has not used Kochab yet. The first look avoids a write where the VP is not alone.
 * Then the VP stores `busy` and looks again. A caller that ends the state changes the word, makes
 * the VP's processor pass a full fence (membarrier) and loads `busy`: at least one of the two sees
 * the store of its partner. acquire: pairs with the release in kbi_single_threaded_park; the VP
 * sees all work of the VP that sleeps now. A thread that the tick moves meanwhile finds two VPs
 * awake, its old VP and the VP that it runs on. */
static inline bool kbi_single_threaded_enter(const struct kbi_task *self)
{
	const struct kbi_vp *vp;

	if (kbi_unlikely(!self || !(vp = self->vp)) ||
		a_load_acq(&kbi_single_threaded.awake) != vp->awake_bit) return false;
	a_store_rlx(&kbi_single_threaded.busy, 1);
	kbi_compiler_barrier();
	if (kbi_likely(a_load_acq(&kbi_single_threaded.awake) == vp->awake_bit))
		return true;
	a_store_rlx(&kbi_single_threaded.busy, 0);
	return false;
}

/* release: pairs with the acquire in settle_sections */
static inline void kbi_single_threaded_leave(void)
{
	a_store_rel(&kbi_single_threaded.busy, 0);
}

/* Begins the state, at boot, before there is a second kernel thread. */
void kbi_single_threaded_begin(unsigned vps);
/* Called by a process that is to run a virtual processor. */
void kbi_single_threaded_joins(void);
/* Returns true if this process has no second kernel thread. */
bool kbi_single_threaded_is_only_one(void);
/* Called in the child of fork, where the caller is a kernel thread and no VP. */
void kbi_single_threaded_after_fork(void);
/* Makes each VP's processor pass a full fence. */
void kbi_single_threaded_barrier(void);
/* Ends the state. Any kernel thread, also in a signal handler, not inside a section. Returns
 * when it has ended. */
void kbi_single_threaded_end_slow(void);

static inline void kbi_single_threaded_end(void)
{
	/* acquire: pairs with the release in kbi_single_threaded_end_slow */
	if (kbi_unlikely(!a_load_acq(&kbi_single_threaded.ended)))
		kbi_single_threaded_end_slow();
}

/* For vp's agent: kbi_single_threaded_park says that no thread runs on vp from now on (it may be
 * repeated); kbi_single_threaded_unpark comes before a thread runs. */
void kbi_single_threaded_park(struct kbi_vp *vp);
void kbi_single_threaded_unpark_slow(struct kbi_vp *vp);

static inline void kbi_single_threaded_unpark(struct kbi_vp *vp)
{
	if (vp->parked)
		kbi_single_threaded_unpark_slow(vp);
}

#endif
