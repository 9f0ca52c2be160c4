/* core/meter_read.c - starts the metering of threads and answers questions about it. Contract in
 * meter.h. */
#include "core/meter_priv.h"

#include "os/sys.h"

enum { TRIES = 3 };

/* The kernel's kinds of clocks. A process of ours is a single kernel thread. */
enum { OF_THREAD = 6, OF_PROCESS = 2 };

/* Returns the time on the clock of kernel thread `tid` of ours, ns. Linux makes a clock's number of
 * the kernel thread's number, inverted, and the kind of clock. */
static uint64_t clock_of_tid(uint32_t tid)
{
	return kbi_sys_clock((int)(~tid << 3 | (kbi_sys_from.processes ? OF_PROCESS : OF_THREAD)));
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Begins the meter of worker b for t, before the kernel thread itself writes that meter. */
static void begin_meter(struct kbi_worker *b, struct kbi_task *t)
{
	uint32_t tid = a_load_rlx(&b->tid);

	a_store_rlx(&b->meter.used, clock_of_tid(tid));
	a_store_rlx(&b->meter.since, kbi_sys_now());
	a_store_rlx(&b->meter.tid, tid);
	a_store_rlx(&b->meter.whose, t);
}

/* Returns the worker of the virtual processor that runs t; NULL: none does. */
static struct kbi_worker *worker_of_running_task(const struct kbi_task *t)
{
	uint64_t s = a_load_acq(&t->state); /* partner: the release store of whoever gives the
	                                     * descriptor its state */

	if (kbi_state_kind(s) != KBI_TASK_RUNNING)
		return NULL;
	return kbi_worker_of_tid((int)a_load_rlx(&kbi_vps[kbi_state_vp(s)]->tid));
}

/* Begins the meters of the threads that run on virtual processors, and of the threads that have a
 * kernel thread to themselves for a call or for good. */
static void begin_all_meters(void)
{
	struct kbi_task *t;
	struct kbi_worker *b;

	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++) {
		t = &kbi_descriptor_at(i)->task;
		b = worker_of_running_task(t);
		if (b)
			begin_meter(b, t);
	}
	for (uint32_t i = 1, n = kbi_worker_limit(); i <= n; i++) {
		b = &kbi_workers[i];
		t = a_load_rlx(&b->guest);
		if (t)
			begin_meter(b, t);
	}
}

static void undo_segments(void)
{
	kbi_segment_stop();
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++)
		kbi_meter_undo_segment(&kbi_descriptor_at(i)->task);
}

/* Clears the meters of threads that switched away before their kernel thread knew that they are
 * metered. */
static void clear_gone_meters(void)
{
	for (uint32_t i = 1, n = kbi_worker_limit(); i <= n; i++) {
		struct kbi_worker *b = &kbi_workers[i];
		void *t = a_load_rlx(&b->meter.whose);

		if (t && t != a_load_rlx(&b->guest) && worker_of_running_task(t) != b)
			a_cas_rlx(&b->meter.whose, &t, NULL);
	}
}

bool kbi_meter_start(void)
{
	uint32_t off = KBI_METER_OFF;

	/* acquire and release: of several callers a single caller goes on */
	if (kbi_likely(a_load_rlx(&kbi_meter_state) != off) ||
	    !a_cas_acqrel(&kbi_meter_state, &off, KBI_METER_STARTS))
		return kbi_descriptor_table.charged || !kbi_vp_n;
	if (kbi_vp_n && !kbi_descriptor_table.charged)
		return false;
	if (kbi_vp_n)
		begin_all_meters();
	/* release: partner is the acquire in kbi_meter_is_on */
	a_store_rel(&kbi_meter_state, KBI_METER_ON);
	a_store_rlx(&kbi_meter_rests, 0);
	/* A thread that gives a descriptor, or has a block with a descriptor, behind this fence sees
	 * that threads are metered; else its descriptor is seen here. Partner: the fence in
	 * kbi_run_give_segment */
	a_fence_sc();
	if (kbi_vp_n) {
		undo_segments();
		clear_gone_meters();
	}
	return true;
}

/* ---- questions ------------------------------------------------------------------------------- */

uint64_t kbi_meter_self(struct kbi_task *self, bool handler)
{
	struct kbi_worker *b = kbi_worker_of_task(self);

	if (b && kbi_meter_is_on() && (!handler || a_load_rlx(&b->meter.whose) == self))
		kbi_meter_pass(b, self, true);
	kbi_meter_undo_segment(self); /* it may have begun when metering did */
	return a_load_rlx(kbi_meter_charged(self));
}

static const struct kbi_meter *meter_of_thread(const struct kb_thread *t)
{
	for (uint32_t i = 1, n = kbi_worker_limit(); i <= n; i++)
		/* acquire: partner is the release in kbi_meter_pass */
		if (a_load_acq(&kbi_workers[i].meter.whose) == t)
			return &kbi_workers[i].meter;
	return NULL;
}

/* Adds the time that t's kernel thread has used since it was last charged. A turn that may be
 * charged by the wall clock is left out, because the charge may come to less. Returns false if the
 * turn was charged meanwhile. */
static bool add_turn(const struct kbi_meter *m, const struct kb_thread *t, uint64_t *ns)
{
	uint64_t used = a_load_rlx(&m->used), now = clock_of_tid(a_load_rlx(&m->tid));

	/* acquire: as in meter_of_thread */
	if (a_load_acq(&m->whose) != t || a_load_rlx(&m->used) != used ||
	    a_load_rlx(kbi_meter_charged(&t->task)) != *ns)
		return false;
	if (now > used + 2 * KBI_METER_SHORT)
		*ns += now - used;
	return true;
}

uint64_t kbi_meter_read(const struct kb_thread *t)
{
	uint64_t ns = a_load_rlx(kbi_meter_charged(&t->task));

	for (int i = 0; i < TRIES; i++) {
		const struct kbi_meter *m = meter_of_thread(t);

		if (!m || add_turn(m, t, &ns))
			break;
		ns = a_load_rlx(kbi_meter_charged(&t->task));
	}
	return ns;
}
