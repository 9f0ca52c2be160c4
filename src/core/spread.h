/* core/spread.h - VPs on separate processors. The kernel moves a thread when it wakes up, when a
 * processor has nothing to run for a while, or when a processor has clearly more to run than
 * another. So a server's VPs, which never sleep, may share a processor for seconds, while the
 * clients' threads, each of which runs for a few microseconds, share a second processor that is
 * idle in between. Therefore sysmon (the system monitor) looks for two VPs on the same
 * processor, and the VP with the higher number goes to an idle processor. The kernel may move it
 * from there at any time. Why so: doc/why/fair-turns.md.
 * Callers: run, sysmon. Calls os. No locks; never switches. */
#ifndef KBI_SPREAD_H
#define KBI_SPREAD_H

#include "core/vp.h"

/* 1: sysmon asks VPs to say where they run. It does so if there is a quantum and no seccomp
 * filter that could forbid it. */
extern KBI_HIDDEN a32 kbi_spread_asked;

/* The rest of kbi_spread_look. */
void kbi_spread_look_now(struct kbi_vp *vp);

/* Says where vp runs, and moves vp to the processor that sysmon wants. Most calls do
 * nothing. On the VP, np > 0 or on the agent. */
static inline void kbi_spread_look(struct kbi_vp *vp)
{
	enum { ONE_OF = 16 };

	if (++vp->spread.looks % ONE_OF == 0 && a_load_rlx(&kbi_spread_asked))
		kbi_spread_look_now(vp);
}

/* Looks for VPs that share a processor. Called by sysmon, often while VPs are busy. */
void kbi_spread_watch(uint64_t now);

#endif
