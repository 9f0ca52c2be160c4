/* core/apart.h - VPs on separate processors. The kernel moves a thread when it wakes up, when a
 * processor has nothing to run for a while, or when a processor has clearly more to run than
 * another. So a server's VPs, which never sleep, may share a processor for seconds, while the
 * clients' threads, each of which runs for a few microseconds, share a second processor that is
 * idle in between. Therefore the lookout (system monitor) looks for two VPs on the same
 * processor, and the VP with the higher number goes to an idle processor. The kernel may move it
 * from there at any time. Why so: doc/why/fair-turns.md.
 * Callers: run, lookout. Calls os. No locks; never switches. */
#ifndef KBI_APART_H
#define KBI_APART_H

#include "core/vp.h"

/* 1: the lookout asks VPs to say where they run. It does so if there is a quantum and no seccomp
 * filter that could forbid it. */
extern KBI_HIDDEN a32 kbi_apart_asked;

/* The rest of kbi_apart_look. */
void kbi_apart_look_now(struct kbi_vp *vp);

/* Says where vp runs, and moves vp to the processor that the lookout wants. Most calls do
 * nothing. On the VP, np > 0 or on the agent. */
static inline void kbi_apart_look(struct kbi_vp *vp)
{
	enum { ONE_OF = 16 };

	if (++vp->apart.looks % ONE_OF == 0 && a_load_rlx(&kbi_apart_asked))
		kbi_apart_look_now(vp);
}

/* Looks for VPs that share a processor. Called by the lookout, often while VPs are busy. */
void kbi_apart_watch(uint64_t now);

#endif
