/* core/body.h - a body: a kernel thread that is a virtual processor, or was one and holds a thread that blocks, or
 * waits to be one. What belongs to the kernel thread, not to the VP: its TLS block, the stack of its agent.
 * Callers: core, posix's signals. */
#ifndef KBI_BODY_H
#define KBI_BODY_H

#include "base/san.h"
#include "core/task.h"
#include "os/context.h"

struct kb_thread;
struct kbi_handoff_habit;

/* What the kernel thread has used of the processor, and for whom: core/meter. Written by itself, read by all. */
struct kbi_meter {
	aptr whose; /* the thread that uses it now; NULL: none, or it is just being charged */
	a64 used;   /* ns, by the kernel's clock or as estimated since; charged up to here */
	a64 since;  /* when that was, ns */
	a32 tid;    /* of the kernel thread; another one's record begins anew */
};

enum { KBI_AGENT_STACK = 65536 }; /* of a kernel thread of ours */

struct kbi_body {
	/* constant while it runs */
	void *tp;                    /* its own thread pointer */
	struct kbi_task **self_slot; /* kbi_self_tls in that block */
	void *heap;                  /* what the allocator calls it (mem/heap_door) */
	void *const *caught;         /* in its TLS: the C++ exception that is being handled; NULL: there are none here */
	void *signal_stack;          /* from kbi_preempt_alt_stack */
	uint16_t index;              /* in kbi_spare_bodies, from 1 */
	uint8_t leader;              /* the process's first kernel thread: never ends */
	a32 tid;                     /* 0: it does not run */
	uint64_t closes, closed;     /* signals that it blocks because it is a body; those that no thread on it has blocked or
	                              * opened since: its own */
	a8 changed;                  /* a thread has made it another for good: it serves no other; written by that thread */

	/* the kernel thread itself */
	struct kbi_vp *vp;           /* which VP it is; NULL: none */
	struct kbi_san san;          /* its agent's */
	/* while a thread blocks on it: */
	aptr guest;                  /* that thread; read by all */
	struct kbi_vp *home;         /* the VP it lent or gave away */
	struct kbi_ctx ctx;          /* its agent, to go back to */
	kbi_tpword cur_tp;           /* thread pointer loaded */
	uint64_t lent;               /* what it has put into home->lent; 0: nothing */
	uint64_t seq;                /* how often it has lent */
	uint32_t depth;              /* begins without their end */
	struct kbi_handoff_habit *habit; /* NULL: the call is of no kind */
	a8 displaced;                /* its VP went to a body that needed a VP, however short the call */
	uint64_t begun_at;           /* ns: when it began, if it has a habit and threads were ready; else 0 */
	uint8_t kept;                /* the VP was not lent after all */
	void *crash_guard;           /* core/contain reads the frames of a thread that has crashed */
	uint8_t found;               /* nobody has announced the call: it ends at the next call of the library */

	/* the drop-in's: signals for attention that are on their way to it (posix/signal_attention), and those of the program
	 * that have been sent to it since it was last looked whether some wait there (posix/signal_post) */
	a32 attention;
	a64 posted;

	struct kbi_meter meter;

	/* the system call it was last found in; written by the lookout before it sends a tick */
	struct kbi_context_call call;

	/* a spare: */
	aptr job;                    /* the VP it is to be */
	a32 bell;
	struct kbi_body *next;       /* under the pool's lock */
	uint8_t fresh;               /* it was made to be one and has not waited yet; under the pool's lock */
} KBI_ALIGNED(KBI_CACHE_LINE);

/* The table, [1] .. [kbi_body_limit()]; constant after boot. */
extern KBI_HIDDEN struct kbi_body *kbi_spare_bodies;
uint32_t kbi_body_limit(void);
/* The one that the caller, self, is on; NULL: none of ours. */
struct kbi_body *kbi_body_of_task(struct kbi_task *self);
/* The one that is this kernel thread, or NULL. */
struct kbi_body *kbi_body_of_tid(int tid);

#endif
