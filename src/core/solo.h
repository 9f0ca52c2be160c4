/* core/solo.h - one virtual processor, and no other kernel thread uses the program's objects: then threads run
 * one at a time, and what elsewhere needs an atomic read-modify-write is a load and a store. Why, and what it
 * brings: doc/why/posix-fast-path.md.
 *
 * It begins at boot, if there is one VP and the process has one kernel thread. It ends, for good, when another
 * kernel thread may come to use an object: who starts one of ours, and each foreign one before its first use,
 * calls kbi_solo_end, which waits until the VP is outside its section.
 *
 * A section (enter ... leave) is some ten instructions of one thread: it does not switch, call or wait, and the
 * tick leaves it alone like np > 0. Not for what a signal handler may use, too.
 * Callers: boot, foreign, thread, preempt, sync. */
#ifndef KBI_SOLO_H
#define KBI_SOLO_H

#include "core/task.h"

struct kbi_solo {
	a32 on;    /* 1: it holds. Cleared by any kernel thread */
	a32 busy;  /* the VP is inside a section; written by it */
	a32 ended; /* on has been cleared and the VP is outside, or never was on */
};
extern KBI_HIDDEN struct kbi_solo kbi_solo;

/* true: inside a section. self: kbi_self_raw(), NULL on a kernel thread that has not used Kochab yet.
 * First a look, so that nothing is written where it does not hold. Then the VP stores `busy` and loads `on`; who
 * ends it stores `on`, makes the VP's processor pass a full fence (membarrier), and loads `busy`: one of the two
 * sees the other. What a section reads of an object it orders itself, by the object's word. */
static inline bool kbi_solo_enter(const struct kbi_task *self)
{
	if (!self || !a_load_rlx(&kbi_solo.on))
		return false;
	a_store_rlx(&kbi_solo.busy, 1);
	kbi_compiler_barrier();
	if (kbi_likely(a_load_rlx(&kbi_solo.on)))
		return true;
	a_store_rlx(&kbi_solo.busy, 0);
	return false;
}

/* release: partner is the acquire in kbi_solo_end */
static inline void kbi_solo_leave(void)
{
	a_store_rel(&kbi_solo.busy, 0);
}

/* At boot, before there is a second kernel thread. */
void kbi_solo_begin(void);
/* In the child of fork, whose threads are kernel threads. */
void kbi_solo_after_fork(void);
/* Any kernel thread, also in a signal handler, not inside a section. Returns when it has ended. */
void kbi_solo_end_slow(void);

static inline void kbi_solo_end(void)
{
	/* acquire: partner is the release in kbi_solo_end_slow */
	if (kbi_unlikely(!a_load_acq(&kbi_solo.ended)))
		kbi_solo_end_slow();
}

#endif
