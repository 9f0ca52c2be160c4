/* core/agent.h - the polling agent of a VP: it runs while no thread of the VP is ready.
 * Callers: worker_pool, handoff, lending, quantum, standstill, api. */
#ifndef KBI_AGENT_H
#define KBI_AGENT_H

#include "core/vp.h"

/* Runs the VP of worker me on me's own stack with its own TLS. Returns when me has no VP any
 * more. */
void kbi_agent_run(struct kbi_worker *me);
/* Returns true if w has ready tasks or unseen events. An approximate look from another VP. now:
 * ns. */
bool kbi_agent_has_work(struct kbi_vp *w, uint64_t now);
/* Returns true if w has unseen events; does not count its ready tasks. */
bool kbi_agent_has_news(struct kbi_vp *w, uint64_t now);
/* Returns the time that vp has had no thread to run, ns, counted from the first call on. */
uint64_t kbi_agent_idle_ns(struct kbi_vp *vp);
/* Prints the last words when all threads have waited for each other for a second and nothing in the
 * runtime can wake them; NULL: none. Returns false, and prints nothing, if another source may still
 * wake a thread. */
extern bool (*kbi_agent_deadlock)(void);
/* The number of threads that wait for any signal. Another process may send a signal, so no wait is
 * a deadlock while the number is not 0. Each such thread changes it itself, right before and after
 * its sleep. */
extern a32 kbi_agent_for_signals;
/* Called before a VP sleeps in the kernel; NULL: nothing. The drop-in closes the VP to signals
 * there. */
extern void (*kbi_agent_sleeps)(struct kbi_vp *vp);
/* Called by a VP with rung watches (domain.h) before it sleeps, ahead of its fence and last look,
 * and again when it is awake. Set before the first such watch. */
extern void (*kbi_agent_dozes)(struct kbi_vp *vp, bool asleep);

#endif
