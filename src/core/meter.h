/* core/meter.h - the processor time that each thread with TLS of its own has used. Threads are
 * not metered until a program asks; from then on each switch that loads a different thread
 * pointer charges the leaving thread, by the clock of its kernel thread. Until then this costs
 * nothing: a switch looks at kbi_meter_rests in place of kbi_tp_fast before it writes the thread
 * pointer by an instruction. From then on TLS blocks that had been loaded by descriptors
 * (libc/segment) are loaded without descriptors. Why so: doc/why/cpu-clocks.md.
 * Callers: run, handoff, boot; posix/clock, posix/thread. No locks, never switches. A signal
 * handler may call start, self and read. */
#ifndef KBI_METER_H
#define KBI_METER_H

#include "core/descriptor.h"
#include "core/vp.h"
#include "core/worker.h"

/* 1: no thread is metered, and an instruction writes the thread pointer. */
extern KBI_HIDDEN a32 kbi_meter_rests;

/* OFF -> STARTS -> ON, by the first thread that asks. STARTS for ever: there is no address space
 * for the charges. */
enum { KBI_METER_OFF, KBI_METER_STARTS, KBI_METER_ON };
extern KBI_HIDDEN a32 kbi_meter_state;

static inline bool kbi_meter_is_on(void)
{
	/* acquire: pairs with the release in kbi_meter_start */
	return a_load_acq(&kbi_meter_state) == KBI_METER_ON;
}

/* Sets kbi_meter_rests, after kbi_tp_init and kbi_descriptor_setup. */
void kbi_meter_setup(void);
/* Makes the processor time used so far the time of t, the process's first thread, which becomes
 * a lightweight thread. b: its kernel thread if it stays on that; else NULL. */
void kbi_meter_main(struct kb_thread *t, struct kbi_worker *b);
/* Starts metering: of running threads from this moment, of all threads else from their next
 * turn. Idempotent. Returns false if there was no address space for it. */
bool kbi_meter_start(void);
/* Sets the time of a new thread, which does not run yet, to 0. */
void kbi_meter_fresh(struct kb_thread *t);

/* Charges the leaving thread; vp's kernel thread goes on with `next`; NULL: a thread without TLS
 * of its own, or the agent. On the stack and with the TLS of the leaving thread. */
void kbi_meter_turn(struct kbi_vp *vp, struct kbi_task *next);
/* Makes switches load t's block without a segment descriptor. t runs here, or may run on any VP. */
void kbi_meter_undo_segment(struct kbi_task *t);
/* Charges a thread that leaves the kernel thread that it had to itself; the caller is on that
 * kernel thread. */
void kbi_meter_leave(struct kbi_worker *b);

/* Returns the ns that self, the caller, has used; the value never decreases. Inside np brackets;
 * handler: these brackets are not the first, so the caller may be a signal handler that has
 * interrupted a switch. */
uint64_t kbi_meter_self(struct kbi_task *self, bool handler);
/* Returns the ns that any thread has used, approximately if it runs at this moment. */
uint64_t kbi_meter_read(const struct kb_thread *t);

#endif
