/* core/slice.h - fair turns at calls. A thread whose calls find their data at once never waits, and
 * would keep its VP for a quantum while threads whose data has come as well wait that long. So such
 * a call ends a turn that has been long enough, where threads like it are ready. Why so:
 * doc/why/fair-turns.md.
 * Callers: api, io, posix. Calls run, yield. */
#ifndef KBI_SLICE_H
#define KBI_SLICE_H

#include "core/vp.h"
#include "sched/source.h"

/* Lengths of such turns, ns. TAKEN: the call has taken something in, such as a request, and a turn
 * of many switches' length is enough. GIVEN: it has handed something out, most often amid a piece
 * of work, and perhaps with a lock of the program's. NATIVE: in the native interface the next
 * thread keeps the VP as long as it likes. */
enum { KBI_SLICE_TAKEN = 10000, KBI_SLICE_NATIVE = 100000, KBI_SLICE_GIVEN = 1000000 };

/* Notes that self makes such a call, or is about to wait in it, or to sleep for a while. */
static inline void kbi_slice_note(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_task_is(self, KBI_TASK_COMPUTES)))
		kbi_task_clear(self, KBI_TASK_COMPUTES);
}

/* Does the rest of kbi_slice_call. */
KBI_SWITCHES void kbi_slice_end(struct kbi_task *self, unsigned ns);

/* Ends a turn of ns or more; called after a call that could have suspended the caller, and has not.
 * The test in line is approximate: the caller may be moved at any time. */
KBI_SWITCHES static inline void kbi_slice_call(unsigned ns)
{
	struct kbi_task *self = kbi_self_raw();
	const struct kbi_vp *vp = self ? self->vp : NULL;

	if (kbi_unlikely(vp && (vp->first || vp->s->pq.head || !vp->plain ||
	    !a_zero32_rlx(&kbi_source.waiting))))
		kbi_slice_end(self, ns);
}

/* Does as kbi_slice_call after a call that has given something out: such a long turn is seen in
 * time if some of the calls look. */
KBI_SWITCHES static inline void kbi_slice_given(void)
{
	enum { ONE_OF = 16 };
	struct kbi_task *self = kbi_self_raw();
	struct kbi_vp *vp = self ? self->vp : NULL;
	uint32_t n;

	if (kbi_unlikely(!vp))
		return;
	n = a_load_rlx(&vp->slice.given) + 1;
	a_store_rlx(&vp->slice.given, n);
	if (kbi_unlikely(n % ONE_OF == 0))
		kbi_slice_call(KBI_SLICE_GIVEN);
}

#endif
