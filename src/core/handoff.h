/* core/handoff.h - hand-off of a worker: a thread that blocks in the kernel keeps its kernel
 * thread, and its virtual processor goes on with another kernel thread. Why so:
 * doc/why/hand-off.md.
 * Callers: api, thread, thread_join, boot, contain, dump, quantum, standstill, io, posix. Calls
 * worker_pool, worker_maker, worker_thread. */
#ifndef KBI_HANDOFF_H
#define KBI_HANDOFF_H

#include "core/descriptor.h"
#include "core/worker.h"

enum kbi_handoff_hint {
	KBI_HANDOFF_PERHAPS, /* the call may be over at once: the VP is lent, and taken if the call
	                      * lasts */
	KBI_HANDOFF_SURELY,  /* the call will block: if threads are ready here the VP is given away at
	                      * once */
};

/* How long the calls of a kind have been. After a long call the next calls give the VP away at
 * once, if threads are ready. All zero: no call yet. */
struct kbi_handoff_habit {
	a32 lasts; /* how many of the next calls give it away; written by any VP, approximate */
};

/* Begins a blocking call. From here to kbi_handoff_end the calling thread is on no VP: calls of the
 * library block its kernel thread. Nests. On a kernel thread that is no VP it does nothing. Keeps
 * errno. */
void kbi_handoff_begin(enum kbi_handoff_hint hint);
/* Begins a call of a kind, whose record is static. */
void kbi_handoff_begin_as(struct kbi_handoff_habit *habit);
/* Returns true if a blocking call might get no kernel thread for its VP: then it would hold up all
 * threads there, and the event that it waits for may be up to such a thread. A caller that can try
 * without blocking should do so. Prints a message, once. */
bool kbi_handoff_holds_up(void);
/* Ends the call: the thread is on a VP again. Returns false if there was no begin. Keeps errno. */
KBI_SWITCHES bool kbi_handoff_end(void);
/* Gives the VP away; called on a VP, outside the library, in the tick's handler, when the
 * interrupted call blocks. The thread goes on with its call and comes back at its next call of the
 * library. Returns false if there is no idle worker. */
bool kbi_handoff_found(struct kbi_task *self, void *context);
/* Brings such a thread, self, back to a VP when it calls the library. True: it is on a VP again. */
KBI_SWITCHES bool kbi_handoff_end_found(struct kbi_task *self);
/* Starts sysmon and the worker maker, unless they run. Returns 0, EAGAIN or ENOMEM. */
int kbi_handoff_start_sysmon(void);
/* Returns true if an idle worker waits; else asks for one. Sysmon only. */
bool kbi_handoff_has_idle_worker(void);
/* Ends all calls that self has begun; for a thread that ends, or was unwound, inside a call. */
KBI_SWITCHES void kbi_handoff_end_all(struct kbi_task *self);

/* Makes self's kernel thread the thread's own for good; called by self between begin and end. On
 * return another kernel thread has the VP, and this kernel thread serves no other thread any more.
 * Returns false if no other can be had. */
bool kbi_handoff_keep(struct kbi_task *self);
/* Undoes that. */
void kbi_handoff_keep_no_more(struct kbi_task *self);
/* Returns true if t has such a kernel thread. Called by t. */
bool kbi_handoff_is_kept(const struct kb_thread *t);
/* Returns true if kernel thread tid, whose number vp still has, has given vp away; the next worker
 * is on its way. */
bool kbi_handoff_is_given(const struct kbi_vp *vp, int tid);

/* Returns true if t is between begin and end. For t itself; for any other thread it is
 * approximate. */
static inline bool kbi_handoff_is_away(const struct kb_thread *t)
{
	/* acquire: partner is the release store in depart_from_vp, behind the store of t->body */
	return kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_BLOCKED;
}

/* Returns the kernel thread that a BLOCKED thread is on; 0: it is not BLOCKED any more. */
int kbi_handoff_tid(const struct kb_thread *t);
/* The number of threads in blocking calls without a VP; and the number of kernel threads that the
 * runtime has. */
unsigned kbi_handoff_away(void);
unsigned kbi_handoff_kernel_threads(void);
/* Counts the calling kernel thread among the runtime's. All it does for threads is to wake them
 * (kbi_wait_wake), never of its own accord. That touches no object, so it needs no descriptor, and
 * a VP that runs alone goes on alone (core/single_threaded). If it comes to use an object all the
 * same, it becomes a foreign kernel thread then, like any other. */
void kbi_handoff_helps(void);
/* Ends that: the kernel thread is about to end all the same. */
void kbi_handoff_helps_no_more(void);

/* Sets up libc's waits and the child of fork. Once, at start. */
void kbi_handoff_setup(void);

/* Called on a thread that is about to leave its kernel thread, which becomes an idle worker; NULL:
 * nothing. */
extern void (*kbi_handoff_leaves)(struct kbi_task *self);
/* Called on a thread that is about to be on no VP, with np == 0, or from a handler with the
 * interrupted context: signals for the thread are sent to its kernel thread from then on. NULL:
 * nothing. */
extern void (*kbi_handoff_departs)(struct kbi_task *self, void *context);
/* Called on a thread whose kernel thread has become vp's, but not from the pool of idle workers;
 * NULL: nothing. */
extern void (*kbi_handoff_takes)(struct kbi_vp *vp, struct kbi_task *self);

#endif
