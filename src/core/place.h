/* core/place.h - processors of virtual processors, where the program or its user chooses them: option bind, kb_vp_bind.
 * A bound VP's kernel thread has an affinity of one processor. The place is the VP's: a kernel thread that becomes the VP
 * goes there. Kernel threads that are no VP, and children of fork, have the processors that the program had at the start.
 * Callers: boot, spare, handoff, apart, body_thread, thread, api; posix/affinity, kernel. Calls os. */
#ifndef KBI_PLACE_H
#define KBI_PLACE_H

#include "core/vp.h"
#include "os/cpu.h"

/* 1: some VP is bound, or was. */
extern KBI_HIDDEN a32 kbi_place_used;

/* Before there are VPs: reads the option bind. *n: how many there are to be, 0: not said yet; and the number after it.
 * *processors: how many these share. EINVAL: the program has not all processors of the list; a message says which. */
int kbi_place_choose(unsigned *n, unsigned *processors);
/* vp is new: its place by the option. */
void kbi_place_give(struct kbi_vp *vp);
/* The rest of kbi_place_take. */
void kbi_place_take_now(const struct kbi_vp *vp);
/* The caller's kernel thread is vp's body from now on. */
static inline void kbi_place_take(const struct kbi_vp *vp)
{
	if (kbi_unlikely(a_load_rlx(&kbi_place_used)))
		kbi_place_take_now(vp);
}
/* vp's place from now on; processor -1: any. EINVAL: the program has no such processor; EPERM: the kernel refuses. */
int kbi_place_bind(struct kbi_vp *vp, int processor);
/* The processor; -1: not bound. */
int kbi_place_of(const struct kbi_vp *vp);
/* The caller's kernel thread is not a VP's: it has the program's processors again. */
void kbi_place_leave(void);
/* The program's processors; NULL: no VP is bound, and VPs have them. */
const struct kbi_cpus *kbi_place_programs(void);

#endif
