/* core/handoff.h - body hand-off: a thread that blocks in the kernel keeps its kernel thread, and its virtual
 * processor goes on with another one. Why so: doc/why/hand-off.md.
 * Callers: api, thread, io, posix. Calls spare, nursery, body_thread. */
#ifndef KBI_HANDOFF_H
#define KBI_HANDOFF_H

#include "core/body.h"
#include "core/descriptor.h"

enum kbi_handoff_hint {
	KBI_HANDOFF_PERHAPS, /* it may be over at once: the VP is lent, and taken if that lasts */
	KBI_HANDOFF_SURELY,  /* it will block: if others are ready here the VP is given away at once */
};

/* How long the calls of a kind have been. Where a call has lasted the next calls give the VP away at once, if threads are
 * ready. All zero: none has yet. */
struct kbi_handoff_habit {
	a32 lasts; /* how many of the next calls; written by all, approximate */
};

/* From here to the end the calling thread is on no VP: what it calls of the library blocks its kernel thread. Nests.
 * On a kernel thread that is no VP: nothing. Keeps errno. */
void kbi_handoff_begin(enum kbi_handoff_hint hint);
/* The same of a call of a kind, whose record is static. */
void kbi_handoff_begin_as(struct kbi_handoff_habit *habit);
/* A call that blocks might get no kernel thread for its VP, and hold up all who are there; and what it waits for may be one
 * of them to do. Who can try without blocking had better. Says so, once. */
bool kbi_handoff_holds_up(void);
/* False: there was no begin. Keeps errno. */
KBI_SWITCHES bool kbi_handoff_end(void);
/* On a VP, outside the library, in the tick's handler: the call that it has interrupted blocks. The VP is given away and
 * the thread goes on with its call; it comes back at the next call of the library. False: there is no spare. */
bool kbi_handoff_found(struct kbi_task *self, void *context);
/* It calls: true: it is on a VP again. self: on none. */
KBI_SWITCHES bool kbi_handoff_end_found(struct kbi_task *self);
/* Starts the lookout, and who makes spares for it, unless they run. 0, EAGAIN, ENOMEM. */
int kbi_handoff_start_lookout(void);
/* A spare waits; if not, one has been asked for. The lookout only. */
bool kbi_handoff_has_spare(void);
/* The same for a thread that ends, or was unwound, inside: whatever it has begun is over. */
KBI_SWITCHES void kbi_handoff_end_all(struct kbi_task *self);

/* self is the caller, between the two. Its kernel thread is to be another for good: its VP is another kernel thread's when
 * this returns, and this one serves no other thread any more. False: no other can be had. */
bool kbi_handoff_keep(struct kbi_task *self);
/* It is as it was before. */
void kbi_handoff_keep_no_more(struct kbi_task *self);
/* Is that so of t's kernel thread? For t. */
bool kbi_handoff_is_kept(const struct kb_thread *t);
/* Has this kernel thread, whose number vp still has, given vp away? The next one is on its way. */
bool kbi_handoff_is_given(const struct kbi_vp *vp, int tid);

/* Is it between the two? The caller itself, or any thread, approximately. */
static inline bool kbi_handoff_is_away(const struct kb_thread *t)
{
	/* acquire: partner is the store in kbi_handoff_begin, behind that of t->body */
	return kbi_state_kind(a_load_acq(&t->task.state)) == KBI_TASK_BLOCKED;
}

/* The kernel thread that a BLOCKED thread is on; 0: it is not BLOCKED any more. */
int kbi_handoff_tid(const struct kb_thread *t);
/* How many threads are in blocking calls without a VP, and kernel threads that the runtime has. */
unsigned kbi_handoff_away(void);
unsigned kbi_handoff_kernel_threads(void);
/* The calling kernel thread is one of them. All it does for threads is to wake them (kbi_wait_wake),
 * and not by itself. That touches no object, so it needs no descriptor and whoever runs alone goes on so (core/solo). If it
 * comes to use an object all the same it becomes a foreign one then, like any other. */
void kbi_handoff_helps(void);
/* It is about to end all the same. */
void kbi_handoff_helps_no_more(void);

/* Once, at start. */
void kbi_handoff_setup(void);

/* Called on a thread that is about to leave its kernel thread, which becomes a spare; NULL: nothing. */
extern void (*kbi_handoff_leaves)(struct kbi_task *self);
/* Called on a thread that is about to be on no VP, with np == 0, or from a handler with the context that it has
 * interrupted: signals are sent to its kernel thread from then on. NULL: nothing. */
extern void (*kbi_handoff_departs)(struct kbi_task *self, void *context);
/* Called on a thread whose kernel thread has become vp's, and not by way of the spares; NULL: nothing. */
extern void (*kbi_handoff_takes)(struct kbi_vp *vp, struct kbi_task *self);

#endif
