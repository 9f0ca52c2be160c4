/* core/apart.h - VPs on processors of their own. The kernel moves a thread when it wakes up, when a processor has nothing
 * to run for a while, or when a processor has clearly more to run than another. A server's VPs, which never sleep, may so
 * share a processor for seconds, while the clients' threads, each of which runs for a few microseconds, share a second
 * processor that is idle in between. So the lookout looks for two VPs on the same processor, and the VP with the higher
 * number goes to an idle processor. The kernel may move it from there as ever. Why so: doc/why/fair-turns.md.
 * Callers: run, lookout. Calls os. */
#ifndef KBI_APART_H
#define KBI_APART_H

#include "core/vp.h"

/* The lookout asks VPs to say where they run: there is a quantum, and no seccomp filter that could forbid it. */
extern KBI_HIDDEN a32 kbi_apart_asked;

/* The rest of kbi_apart_look. */
void kbi_apart_look_now(struct kbi_vp *vp);

/* vp says where it runs, and goes where the lookout wants it. Most calls do nothing. On the VP, np > 0 or on the agent. */
static inline void kbi_apart_look(struct kbi_vp *vp)
{
	enum { ONE_OF = 16 };

	if (++vp->apart.looks % ONE_OF == 0 && a_load_rlx(&kbi_apart_asked))
		kbi_apart_look_now(vp);
}

/* The lookout looks; often, while VPs are busy. */
void kbi_apart_watch(uint64_t now);

#endif
