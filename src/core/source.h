/* core/source.h - what agents look at beyond the domains: events that the kernel has for threads that wait for
 * descriptors. Room io registers itself here through pointers before its first thread waits.
 * Who looks: an idle VP while it polls, a busy one at each service; and one of the sleepers sleeps in it, not in its
 * futex. As a sleeper sees each event at once, nobody else looks meanwhile. But each event costs a kernel's wake-up then:
 * as long as a busy VP asks often enough, the others stay in their futexes and look up now and then whether it still does.
 * Nobody hangs: who makes `waiting` more than 0 is awake, and each VP that goes to sleep after it becomes the sleeper
 * unless there is one; who stops being the sleeper is awake. Callers: agent, run, vp. */
#ifndef KBI_SOURCE_H
#define KBI_SOURCE_H

#include "base/atom.h"

struct kbi_vp;

struct kbi_source {
	a32 waiting; /* threads that wait for events; 0: nobody looks */
	a32 polled;  /* of them for some that nothing tells the sleeper, who looks up now and then */
	a32 sleeper; /* 1: a VP sleeps here, or is on its way */
	a64 looked;  /* ns, when a busy VP last asked */
	/* constant once somebody waits. Inside np brackets, on VP me */
	void (*poll)(struct kbi_vp *me);    /* wakes whom it has events for */
	/* The sleeper, whose domain is offered: until there is an event, a kick, or ns are over (UINT64_MAX: never). True:
	 * nothing but the time has come */
	bool (*sleep)(uint64_t ns);
	void (*deliver)(struct kbi_vp *me); /* the sleeper, afterwards: wakes whom it woke up for */
	void (*kick)(struct kbi_vp *w);     /* any kernel thread: wakes the sleeper w */
} KBI_ALIGNED(KBI_CACHE_LINE);
extern KBI_HIDDEN struct kbi_source kbi_source;

/* Has anybody to look? One load where nobody waits. */
static inline bool kbi_source_due(void)
{
	return kbi_unlikely(!a_zero32_rlx(&kbi_source.waiting)) &&
	       (!a_load_rlx(&kbi_source.sleeper) || a_load_rlx(&kbi_source.polled));
}

#endif
