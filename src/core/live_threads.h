/* core/live_threads.h - the number of live threads: the process ends with the last thread once main
 * has ended. Counted by slot (0: by foreign kernel threads; 1 + id: by that VP), so that no two VPs
 * share a counter: the sum is needed only after main's end.
 * Callers: thread, thread_loss, api, sync. Calls vp. */
#ifndef KBI_LIVE_THREADS_H
#define KBI_LIVE_THREADS_H

#include "core/vp.h"

struct kbi_live_threads {
	a64 created, ended;
} KBI_ALIGNED(KBI_CACHE_LINE);
extern KBI_HIDDEN struct kbi_live_threads kbi_live_threads[KBI_MAX_VPS + 1];
extern KBI_HIDDEN a32 kbi_live_threads_without_main; /* 1: main has ended */
/* 1: a thread besides main was created since kb_thread_ever_reset */
extern KBI_HIDDEN a32 kbi_live_threads_ever;
/* Threads without which the process may end; they are counted as ended, too. */
extern KBI_HIDDEN a32 kbi_live_threads_servants;

/* Returns the number of threads that have not ended, main included. */
uint64_t kbi_live_threads_sum(void);

/* Ends the process if the last thread has ended. */
void kbi_live_threads_check(void);
/* Notes that main has ended, and does as kbi_live_threads_check. */
void kbi_live_threads_main_ended(void);

/* release: partner is the acquire in kbi_live_threads_sum: a reader that sees an end has seen the
 * creation before it */
static inline void kbi_live_threads_count(a64 *n, bool shared)
{
	if (kbi_unlikely(shared))
		a_add_acqrel(n, 1);
	else
		a_store_rel(n, a_load_rlx(n) + 1);
}

/* Counts a creation, before the thread can run. vp: the caller's VP, or NULL. */
static inline void kbi_live_threads_created(const struct kbi_vp *vp)
{
	if (kbi_unlikely(!a_load_rlx(&kbi_live_threads_ever)))
		a_store_rlx(&kbi_live_threads_ever, 1);
	kbi_live_threads_count(&kbi_live_threads[vp ? vp->id + 1 : 0].created, !vp);
}

static inline void kbi_live_threads_ended(const struct kbi_vp *vp)
{
	kbi_live_threads_count(&kbi_live_threads[vp ? vp->id + 1 : 0].ended, !vp);
	kbi_compiler_barrier(); /* partner: kbi_live_threads_main_ended */
	if (kbi_unlikely(a_load_rlx(&kbi_live_threads_without_main)))
		kbi_live_threads_check();
}

/* Counts the caller, which never ends, as a thread that does not keep the process alive. */
static inline void kbi_live_threads_serves(const struct kbi_vp *vp)
{
	a_add_rlx(&kbi_live_threads_servants, 1);
	kbi_live_threads_ended(vp);
}

#endif
