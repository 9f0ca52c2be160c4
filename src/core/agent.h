/* core/agent.h - the polling agent of a VP. */
#ifndef KBI_AGENT_H
#define KBI_AGENT_H

#include "core/vp.h"

/* Runs the VP that me is, on me's own stack with its own TLS. Returns when me is that VP no more. */
void kbi_agent_run(struct kbi_body *me);
/* Something waits for w that w has not looked at: an approximate look from elsewhere. now: ns. */
bool kbi_agent_has_work(struct kbi_vp *w, uint64_t now);
/* The same without what is ready there. */
bool kbi_agent_has_news(struct kbi_vp *w, uint64_t now);
/* How long vp has had no thread to run, ns; counted from the first call on. */
uint64_t kbi_agent_idle_ns(struct kbi_vp *vp);
/* Last words when all threads wait for each other for a second and nothing of ours can wake them; NULL: none. False:
 * something else may, so nothing was said. */
extern bool (*kbi_agent_deadlock)(void);
/* The number of threads that wait for any signal. Another process may send a signal, so no wait is a deadlock while the
 * number is not 0. Each such thread changes it itself, right before and after its sleep. */
extern a32 kbi_agent_for_signals;
/* Called before a VP sleeps in the kernel, NULL: nothing. The drop-in closes it to signals. */
extern void (*kbi_agent_sleeps)(struct kbi_vp *vp);
/* Called by a VP with rung watches (domain.h) that is about to sleep, before its fence and its last look, and when it is
 * awake again. Set before the first such watch. */
extern void (*kbi_agent_dozes)(struct kbi_vp *vp, bool asleep);

#endif
