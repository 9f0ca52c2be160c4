/* core/meter.h - what each thread with TLS of its own has used of the processor. Nobody is metered until somebody asks;
 * from then on each switch that loads another thread pointer charges the thread that goes, by the clock of its kernel
 * thread. Until then this costs nothing: a switch looks at kbi_meter_rests in the place of kbi_tp_fast, before it writes
 * the thread pointer by an instruction. Blocks that had been loaded by descriptors (os/segment) are loaded so, too, from
 * then on. Why so: doc/why/cpu-clocks.md.
 * Callers: run, handoff, boot; posix/clock, posix/thread. No locks, never switches. start, self and read may be called in
 * a signal handler. */
#ifndef KBI_METER_H
#define KBI_METER_H

#include "core/body.h"
#include "core/descriptor.h"
#include "core/vp.h"

/* 1: nobody is metered, and the thread pointer is written by an instruction. */
extern KBI_HIDDEN a32 kbi_meter_rests;

/* OFF -> STARTS -> ON: who asks first. STARTS for ever: there is no address space for what is charged. */
enum { KBI_METER_OFF, KBI_METER_STARTS, KBI_METER_ON };
extern KBI_HIDDEN a32 kbi_meter_state;

static inline bool kbi_meter_is_on(void)
{
	/* acquire: partner is the release in kbi_meter_start */
	return a_load_acq(&kbi_meter_state) == KBI_METER_ON;
}

/* Behind kbi_tp_init and kbi_descriptor_setup. */
void kbi_meter_setup(void);
/* The process's first thread becomes a lightweight one: what it has used so far is its own. b: its kernel thread, if it
 * stays on that; else NULL. */
void kbi_meter_main(struct kb_thread *t, struct kbi_body *b);
/* Threads are metered from here on, those that run at this moment from now, others from their next turn. Idempotent.
 * False: there was no address space for it. */
bool kbi_meter_start(void);
/* The descriptor is a new thread's, which does not run yet. */
void kbi_meter_fresh(struct kb_thread *t);

/* vp's kernel thread goes on with next, NULL: one without TLS of its own, or its agent. On the stack and with the TLS of
 * who goes. */
void kbi_meter_turn(struct kbi_vp *vp, struct kbi_task *next);
/* t's block is not loaded by a descriptor any more. t runs here, or anybody's. */
void kbi_meter_undo_segment(struct kbi_task *t);
/* A thread leaves the kernel thread that it had to itself; the caller is on that. */
void kbi_meter_leave(struct kbi_body *b);

/* What self, the caller, has used, ns: never goes back. Inside np brackets; handler: they are not the first,
 * so this may be a signal handler that has interrupted a switch. */
uint64_t kbi_meter_self(struct kbi_task *self, bool handler);
/* The same of any thread, approximately if it runs at this moment. */
uint64_t kbi_meter_read(const struct kb_thread *t);

#endif
