/* core/worker_thread.h - kernel threads as the workers of VPs.
 * Callers: boot, handoff, worker_maker, thread, standstill, space, posix. */
#ifndef KBI_WORKER_THREAD_H
#define KBI_WORKER_THREAD_H

#include <signal.h>

#include "core/vp.h"
#include "core/worker.h"

enum { KBI_MOST_STACK = 1 << 28 };

/* Starts a detached kernel thread of ours that runs fn(arg), on a stack large enough for an agent
 * beside libc's TLS. Its signal mask is the caller's. Returns 0, EAGAIN or ENOMEM. */
int kbi_worker_kernel_thread(void *(*fn)(void *), void *arg);
/* Makes kernel threads for a thread whose own kernel thread has attributes that differ
 * (os/clone_attrs); NULL: nobody does yet. */
extern KBI_HIDDEN int (*kbi_worker_maker)(void *(*fn)(void *), void *arg, const sigset_t *mask);
/* Does as kbi_worker_kernel_thread, with all signals blocked. */
int kbi_worker_start_closed(void *(*fn)(void *), void *arg);
/* Starts a kernel thread that runs vp from now on. Returns 0, EAGAIN or ENOMEM. */
int kbi_worker_start(struct kbi_vp *vp);
/* Starts an idle worker. Results as kbi_worker_start; EAGAIN: as many run as may. */
int kbi_worker_start_idle(void);
/* Starts an idle worker from the stock, without waiting for any lock. EAGAIN: also if the stock is
 * empty. */
int kbi_worker_start_idle_at_once(void);
/* Learns the program's present signal mask. Once, by the thread that starts the runtime, before any
 * kernel thread of ours. */
void kbi_worker_learn_masks(void);
/* Sets b's TLS fields to the calling kernel thread's. */
void kbi_worker_native_tp(struct kbi_worker *b);
/* Tells sanitizers the stack of the kernel thread that calls. */
void kbi_worker_own_stack(struct kbi_san *s);
/* Entry of the agent's context on VP 0; worker: its worker. */
void kbi_worker_agent(void *worker);
/* Gives the calling kernel thread the program's mask if it has a worker's, so that a child or
 * program started here does not inherit blocked signals. Returns true if it did; then
 * kbi_worker_mask_again(old) follows. */
bool kbi_worker_programs_mask(sigset_t *old);
void kbi_worker_mask_again(const sigset_t *old);
/* True: workers start with their creator's signal mask. For the drop-in, whose handlers find their
 * thread by themselves. */
extern KBI_HIDDEN bool kbi_worker_open;

#endif
