/* core/lookout.h - a kernel thread that runs no threads and looks after virtual processors whose own one cannot: it is
 * in a call, or computes. It sleeps between two looks, and for good while there is nothing to look after.
 * Callers: agent, handoff, quantum, dump. */
#ifndef KBI_LOOKOUT_H
#define KBI_LOOKOUT_H

#include "core/vp.h"

enum kbi_bell { KBI_BELL_ASLEEP, KBI_BELL_AWAKE, KBI_BELL_NONE /* no such kernel thread yet */ };
extern KBI_HIDDEN a32 kbi_lookout_bell;

/* What it does at each look, on behalf of the unit that set it; NULL: nothing. */
struct kbi_lookout_duty {
	uint64_t (*look)(uint64_t now); /* ns until the next look; UINT64_MAX: there is nothing to look after */
	bool (*needed)(void);           /* there is: asked before it sleeps for good, behind a full fence */
};
extern KBI_HIDDEN struct kbi_lookout_duty kbi_lookout_lent, kbi_lookout_quantum, kbi_lookout_dump;

/* The kernel thread's work. */
void *kbi_lookout_run(void *unused);
/* It sleeps for good: there is something. The caller has published that and fenced. */
void kbi_lookout_wake(void);

/* core/standstill's: 1: it sleeps for good. To be woken when a VP is busy again. */
extern KBI_HIDDEN a32 kbi_lookout_watcher_asleep;
void kbi_lookout_wake_watcher(void);

static inline uint64_t kbi_lookout_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
