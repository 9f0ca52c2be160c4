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

/* What a source of events does. Constant. */
struct kbi_source_does {
	void (*poll)(struct kbi_vp *me);    /* wakes whom it has events for; inside np brackets, on VP me */
	/* The sleeper, whose domain is offered: until there is an event, a kick, or ns are over (UINT64_MAX: never). True:
	 * nothing but the time has come */
	bool (*sleep)(uint64_t ns);
	void (*deliver)(struct kbi_vp *me); /* the sleeper, afterwards: wakes whom it woke up for */
	void (*kick)(struct kbi_vp *w);     /* any kernel thread: wakes the sleeper w */
};

struct kbi_source {
	a32 waiting; /* threads that wait for events; 0: nobody looks */
	a32 polled;  /* of them for some that nothing tells the sleeper, who looks up now and then */
	a32 sleeper; /* 1: a VP sleeps here, or is on its way */
	a64 looked;  /* ns, when a busy VP last asked */
	aptr does;   /* struct kbi_source_does *, before anybody waits; a VP may see that a thread waits, and not this yet */
} KBI_ALIGNED(KBI_CACHE_LINE);
extern KBI_HIDDEN struct kbi_source kbi_source;

/* NULL: none that this kernel thread knows of; whose thread waits does know. acquire: partner is the release in
 * kbi_source_register */
static inline const struct kbi_source_does *kbi_source_known(void)
{
	return a_load_acq(&kbi_source.does);
}

/* Once: what the functions need is there already. */
static inline void kbi_source_register(const struct kbi_source_does *does)
{
	a_store_rel(&kbi_source.does, (void *)does);
}

/* Has anybody to look? One load where nobody waits. */
static inline bool kbi_source_due(void)
{
	return kbi_unlikely(!a_zero32_rlx(&kbi_source.waiting)) &&
	       (!a_load_rlx(&kbi_source.sleeper) || a_load_rlx(&kbi_source.polled));
}

static inline void kbi_source_poll(struct kbi_vp *me)
{
	const struct kbi_source_does *does = kbi_source_known();

	if (does)
		does->poll(me);
}

#endif
