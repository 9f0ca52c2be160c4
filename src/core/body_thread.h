/* core/body_thread.h - kernel threads as the workers (bodies) of VPs.
 * Callers: boot, handoff, nursery, thread, standstill, space, posix. */
#ifndef KBI_BODY_THREAD_H
#define KBI_BODY_THREAD_H

#include <signal.h>

#include "core/body.h"
#include "core/vp.h"

enum { KBI_MOST_STACK = 1 << 28 };

/* Starts a detached kernel thread of ours that runs fn(arg), on a stack large enough for an agent
 * beside libc's TLS. Its signal mask is the caller's. Returns 0, EAGAIN or ENOMEM. */
int kbi_body_kernel_thread(void *(*fn)(void *), void *arg);
/* Makes kernel threads for a thread whose own kernel thread has attributes that differ
 * (os/heritage); NULL: nobody does yet. */
extern KBI_HIDDEN int (*kbi_body_maker)(void *(*fn)(void *), void *arg, const sigset_t *mask);
/* Does as kbi_body_kernel_thread, with all signals blocked. */
int kbi_body_start_closed(void *(*fn)(void *), void *arg);
/* Starts a kernel thread that runs vp from now on. Returns 0, EAGAIN or ENOMEM. */
int kbi_body_start(struct kbi_vp *vp);
/* Starts an idle worker. Results as kbi_body_start; EAGAIN: as many run as may. */
int kbi_body_start_spare(void);
/* Starts an idle worker from the stock, without waiting for any lock. EAGAIN: also if the stock is
 * empty. */
int kbi_body_start_spare_at_once(void);
/* Learns the program's present signal mask. Once, by the thread that starts the runtime, before any
 * kernel thread of ours. */
void kbi_body_learn_masks(void);
/* Sets b's TLS fields to the calling kernel thread's. */
void kbi_body_native_tp(struct kbi_body *b);
/* Tells sanitizers the stack of the kernel thread that calls. */
void kbi_body_own_stack(struct kbi_san *s);
/* Entry of the agent's context on VP 0; body: its worker. */
void kbi_body_agent(void *body);
/* Gives the calling kernel thread the program's mask if it has a worker's, so that a child or
 * program started here does not inherit blocked signals. Returns true if it did; then
 * kbi_body_mask_again(old) follows. */
bool kbi_body_programs_mask(sigset_t *old);
void kbi_body_mask_again(const sigset_t *old);
/* True: workers start with their creator's signal mask. For the drop-in, whose handlers find their
 * thread by themselves. */
extern KBI_HIDDEN bool kbi_body_open;

#endif
