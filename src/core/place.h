/* core/place.h - the processors of virtual processors, if the program or its user chooses them:
 * option bind, kb_vp_bind. The kernel thread of a bound VP has an affinity of one processor. The
 * place belongs to the VP: a kernel thread that becomes the VP goes there. Kernel threads that
 * run no VP, and children of fork, have the processors that the program had at the start.
 * Callers: boot, worker_pool, handoff, spread, worker_thread, thread, api; posix/affinity,
 * kernel_threads. Calls os. No locks; never switches. */
#ifndef KBI_PLACE_H
#define KBI_PLACE_H

#include "core/vp.h"
#include "os/cpu.h"

/* 1: some VP is bound, or was. */
extern KBI_HIDDEN a32 kbi_place_used;

/* Reads the option bind, before there are VPs. *n: how many VPs there are to be, 0: not said
 * yet; afterwards the number. *processors: how many processors these share. Returns 0 or EINVAL:
 * the program does not have all processors of the list; a message says which. */
int kbi_place_choose(unsigned *n, unsigned *processors);
/* Gives vp, which is new, its place by the option. */
void kbi_place_give(struct kbi_vp *vp);
/* The rest of kbi_place_take. */
void kbi_place_take_now(const struct kbi_vp *vp);
/* Puts the caller's kernel thread, vp's worker from now on, on vp's place. */
static inline void kbi_place_take(const struct kbi_vp *vp)
{
	if (kbi_unlikely(a_load_rlx(&kbi_place_used)))
		kbi_place_take_now(vp);
}
/* Sets vp's place; processor -1: any. Returns 0; EINVAL: the program has no such processor;
 * EPERM: the kernel refuses. */
int kbi_place_bind(struct kbi_vp *vp, int processor);
/* Returns the processor that vp is bound to; -1: not bound. */
int kbi_place_of(const struct kbi_vp *vp);
/* Gives the caller's kernel thread, which runs no VP any more, the program's processors again. */
void kbi_place_leave(void);
/* Returns the program's processors; NULL: no VP is bound, and VPs have all of these. */
const struct kbi_cpus *kbi_place_programs(void);

#endif
