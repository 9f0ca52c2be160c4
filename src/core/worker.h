/* core/worker.h - a worker is a kernel thread that runs a virtual processor, or that ran a VP and
 * now holds a thread that blocks, or that waits to run a VP. The record holds what belongs to the
 * kernel thread and not to the VP: its TLS block, the stack of its agent.
 * Callers: core, posix's signals. No locks; never switches. */
#ifndef KBI_WORKER_H
#define KBI_WORKER_H

#include "base/san.h"
#include "libc/context.h"
#include "sched/task.h"

struct kb_thread;
struct kbi_handoff_habit;

/* The processor time of the kernel thread, and the thread it is for: core/meter. Written by the
 * kernel thread, read by all. */
struct kbi_meter {
	/* the thread that uses the processor now; NULL: none, or it is just being charged */
	aptr whose;
	a64 used;   /* ns, by the kernel's clock or estimated since; charged up to here */
	a64 since;  /* ns: the time of `used` */
	a32 tid;    /* of the kernel thread; for a different number the record begins anew */
};

enum { KBI_AGENT_STACK = 65536 }; /* bytes, of a kernel thread of ours */

struct kbi_worker {
	/* constant while it runs */
	void *tp;                    /* its own thread pointer */
	struct kbi_task **self_slot; /* kbi_self_tls in that block */
	void *heap;                  /* the allocator's name of it (mem/heap_door) */
	/* in its TLS: the C++ exception that is being handled; NULL: the program has none */
	void *const *caught;
	void *signal_stack;          /* from kbi_preempt_alt_stack */
	uint16_t index;              /* in kbi_workers, from 1 */
	uint8_t leader;              /* the process's first kernel thread: never ends */
	a32 tid;                     /* 0: it does not run */
	/* closes: signals that it blocks because it is a worker; closed: those of these signals that
	 * no thread on it has blocked or opened since */
	uint64_t closes, closed;
	/* 1: a thread has changed the kernel thread for good, so that it serves no further thread;
	 * written by that thread */
	a8 changed;

	/* written by the kernel thread itself */
	struct kbi_vp *vp;           /* the VP that it runs; NULL: none */
	struct kbi_san san;          /* its agent's */
	/* while a thread blocks on it: */
	aptr guest;                  /* the thread that blocks; read by all */
	struct kbi_vp *home;         /* the VP it lent or gave away */
	struct kbi_ctx ctx;          /* its agent's context, to go back to */
	kbi_tpword cur_tp;           /* thread pointer loaded */
	uint64_t lent;               /* the value that it has put into home->lent; 0: nothing */
	uint64_t seq;                /* how often it has lent its VP */
	uint32_t depth;              /* begins of calls without their end */
	struct kbi_handoff_habit *habit; /* NULL: the call is of no kind */
	a8 displaced; /* 1: its VP went to a worker that needed a VP, although the call is short */
	/* ns: when the call began, if it has a habit and threads were ready; else 0 */
	uint64_t begun_at;
	uint8_t kept;                /* 1: the VP was not lent after all */
	void *crash_guard;           /* core/contain reads the frames of a thread that has crashed */
	uint8_t found; /* 1: the call was not announced: it ends at the next call of the library */

	/* for the drop-in: SIGCANCELs that are on their way to it
	 * (posix/signal_sigcancel), and the program's signals sent to it since the last look whether
	 * some wait there (posix/signal_dispatcher) */
	a32 sigcancel;
	a64 posted;

	struct kbi_meter meter;

	/* the system call it was last found in; written by sysmon before it sends a tick */
	struct kbi_context_call call;

	/* an idle worker: */
	aptr job;                    /* the VP that it is to run */
	a32 bell;
	struct kbi_worker *next;     /* under the pool's lock */
	/* 1: it was made as an idle worker and has not waited yet; under the pool's lock */
	uint8_t fresh;
} KBI_ALIGNED(KBI_CACHE_LINE);

/* The table, [1] .. [kbi_worker_limit()]; constant after boot. */
extern KBI_HIDDEN struct kbi_worker *kbi_workers;
uint32_t kbi_worker_limit(void);
/* Returns the worker that the caller, self, is on; NULL: none of ours. */
struct kbi_worker *kbi_worker_of_task(struct kbi_task *self);
/* Returns the worker whose kernel thread has this number, or NULL. */
struct kbi_worker *kbi_worker_of_tid(int tid);

#endif
