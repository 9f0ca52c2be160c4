/* core/body_thread.h - kernel threads as the bodies of VPs. */
#ifndef KBI_BODY_THREAD_H
#define KBI_BODY_THREAD_H

#include <signal.h>

#include "core/body.h"
#include "core/vp.h"

enum { KBI_MOST_STACK = 1 << 28 };

/* A detached kernel thread of ours that runs fn(arg), on a stack that is large enough for an agent beside libc's TLS. Its
 * signal mask is the caller's. 0, EAGAIN, ENOMEM. */
int kbi_body_kernel_thread(void *(*fn)(void *), void *arg);
/* Who makes them for a thread whose own kernel thread is not as the others are (os/heritage); NULL: nobody yet. */
extern KBI_HIDDEN int (*kbi_body_maker)(void *(*fn)(void *), void *arg, const sigset_t *mask);
/* The same with all signals blocked. */
int kbi_body_start_closed(void *(*fn)(void *), void *arg);
/* A kernel thread that is this VP from now on. 0, EAGAIN, ENOMEM. */
int kbi_body_start(struct kbi_vp *vp);
/* One that waits to become one. The same; EAGAIN: there are as many as may be. */
int kbi_body_start_spare(void);
/* The same from the stock, without waiting for anybody; EAGAIN: that is empty, too. */
int kbi_body_start_spare_at_once(void);
/* The mask that the program has now. Once, by the thread that starts the runtime, before any kernel thread of ours. */
void kbi_body_learn_masks(void);
/* b uses the TLS of the kernel thread that calls. */
void kbi_body_native_tp(struct kbi_body *b);
/* Tells sanitizers the stack of the kernel thread that calls. */
void kbi_body_own_stack(struct kbi_san *s);
/* Entry of the agent's context on VP 0: its body. */
void kbi_body_agent(void *body);
/* What is started from a body would inherit its blocked signals. True: the kernel thread that calls had a body's
 * mask and has the program's until kbi_body_mask_again(old). */
bool kbi_body_programs_mask(sigset_t *old);
void kbi_body_mask_again(const sigset_t *old);
/* Bodies start with the signal mask of their creator: the drop-in, whose handlers find their thread by themselves. */
extern KBI_HIDDEN bool kbi_body_open;

#endif
