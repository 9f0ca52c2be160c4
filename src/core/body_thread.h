/* core/body_thread.h - kernel threads as the bodies of VPs. */
#ifndef KBI_BODY_THREAD_H
#define KBI_BODY_THREAD_H

#include "core/vp.h"

enum { KBI_AGENT_STACK = 65536 };

/* A kernel thread that is this VP from now on. 0, EAGAIN, ENOMEM. */
int kbi_body_start(struct kbi_vp *vp);
/* The VP uses the TLS of the kernel thread that calls. */
void kbi_body_native_tp(struct kbi_vp *vp);
/* Tells sanitizers the stack of the kernel thread that calls. */
void kbi_body_own_stack(struct kbi_san *s);
/* Entry of the agent's context on VP 0. */
void kbi_body_agent(void *vp);
#endif
