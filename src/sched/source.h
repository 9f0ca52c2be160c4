/* sched/source.h - what agents look at beyond the domains: events of the kernel for threads that
 * wait for descriptors. Room io registers its functions here before its first thread waits.
 *
 * An idle VP looks while it polls, a busy VP at each service; and one of the sleeping VPs sleeps
 * in the source, not in its futex. This sleeper sees each event at once, so no other VP looks
 * meanwhile. But then each event costs a wake-up by the kernel: as long as a busy VP asks often
 * enough, all sleepers stay in their futexes and look up now and then whether it still does.
 *
 * No thread hangs: the VP that makes `waiting` more than 0 is awake; each VP that goes to sleep
 * later becomes the sleeper unless there is one; a VP that stops being the sleeper is awake.
 * Callers: core/agent, core/run, core/vp. No locks; never switches. */
#ifndef KBI_SOURCE_H
#define KBI_SOURCE_H

#include "base/atom.h"

struct kbi_vp;

/* Functions of a source of events. Constant. */
struct kbi_source_does {
	/* wakes the threads that it has events for; on VP me, inside np brackets */
	void (*poll)(struct kbi_vp *me);
	/* On the sleeper, whose domain is offered: sleeps until there is an event or a kick, or ns
	 * have passed (UINT64_MAX: never). Returns true if only the time has passed */
	bool (*sleep)(uint64_t ns);
	/* on the sleeper, after sleep: wakes the threads that its events are for */
	void (*deliver)(struct kbi_vp *me);
	void (*kick)(struct kbi_vp *w);     /* any kernel thread: wakes the sleeper w */
};

struct kbi_source {
	a32 waiting; /* threads that wait for events; 0: no VP looks */
	/* of them: threads whose events do not wake the sleeper, so the sleeper looks up now and
	 * then */
	a32 polled;
	a32 sleeper; /* 1: a VP sleeps here, or is on its way */
	a64 looked;  /* ns: when a busy VP last asked */
	/* struct kbi_source_does *, set before any thread waits; a VP may see a waiting thread and
	 * not yet this */
	aptr does;
} KBI_ALIGNED(KBI_CACHE_LINE);
extern KBI_HIDDEN struct kbi_source kbi_source;

/* Returns the functions; NULL: this kernel thread does not see them yet. A VP whose thread waits
 * sees them. acquire: pairs with the release in kbi_source_register. */
static inline const struct kbi_source_does *kbi_source_known(void)
{
	return a_load_acq(&kbi_source.does);
}

/* Registers the functions, once; everything that they need is ready. release: pairs with the
 * acquire in kbi_source_known. */
static inline void kbi_source_register(const struct kbi_source_does *does)
{
	a_store_rel(&kbi_source.does, (void *)does);
}

/* Returns true if this VP should look. One load if no thread waits. */
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
