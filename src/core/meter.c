/* core/meter.c - the processor time of threads. Contract in meter.h. Inside np brackets; no
 * locks; never switches.
 *
 * Each kernel thread that runs threads has a meter: how much of its CPU time has been given to
 * threads so far, when that was, and which thread the passing time belongs to. A charged thread
 * gets the difference to now. The kernel is asked only for a turn of some length, because its
 * answer costs some hundred ns. A shorter turn is charged by the wall clock; the thread has had
 * almost all of that time. The error is made up for at the next look at the kernel's clock, and
 * no time is counted twice: together the threads of a kernel thread have its CPU time. Readings
 * are compared only within one kernel thread, whose number stands beside them.
 *
 * `whose` is NULL while its kernel thread writes the remaining fields: a signal handler that
 * comes in between leaves them alone. */
#include "core/meter_priv.h"

#include <time.h>

#include "os/sys.h"

a32 kbi_meter_rests;
a32 kbi_meter_state;

static void charge_task(const struct kbi_task *t, uint64_t ns)
{
	a_store_rlx(kbi_meter_charged(t), a_load_rlx(kbi_meter_charged(t)) + ns);
}

/* Returns the ns that b, the caller's kernel thread, has used since the last call. */
static uint64_t advance_meter(struct kbi_worker *b, bool exactly)
{
	struct kbi_meter *m = &b->meter;
	uint64_t now = kbi_sys_now(), before = a_load_rlx(&m->used),
		used = before + now - a_load_rlx(&m->since);
	uint32_t tid = a_load_rlx(&b->tid);
	bool same = a_load_rlx(&m->tid) == tid;

	if (kbi_unlikely(exactly || !same || used - before >= KBI_METER_SHORT)) {
		used = kbi_sys_clock(CLOCK_THREAD_CPUTIME_ID);
		now = kbi_sys_now();
		if (!same)
			before = used;
		else if (used < before)
			used = before;
		a_store_rlx(&m->tid, tid);
	}
	a_store_rlx(&m->used, used);
	a_store_rlx(&m->since, now);
	return used - before;
}

void kbi_meter_pass(struct kbi_worker *b, struct kbi_task *next, bool exactly)
{
	struct kbi_task *who = a_load_rlx(&b->meter.whose);
	uint64_t ns;

	a_store_rlx(&b->meter.whose, NULL);
	kbi_compiler_barrier();
	ns = advance_meter(b, exactly);
	if (who)
		charge_task(who, ns);
	/* release: pairs with the acquire in meter_read.c */
	a_store_rel(&b->meter.whose, next);
}

KBI_NOINLINE void kbi_meter_turn(struct kbi_vp *vp, struct kbi_task *next)
{
	if (kbi_meter_is_on())
		kbi_meter_pass(vp->worker, next, false);
}

void kbi_meter_leave(struct kbi_worker *b)
{
	if (kbi_meter_is_on())
		kbi_meter_pass(b, NULL, true);
}

/* The owner writes t->tp with plain stores. This function changes the word only if it still has
 * the value read here: the descriptor may have become a different thread's. */
void kbi_meter_undo_segment(struct kbi_task *t)
{
	kbi_tpword with = __atomic_load_n(&t->tp, __ATOMIC_RELAXED);

	if (kbi_segment_selector(with))
		__atomic_compare_exchange_n(&t->tp, &with, (kbi_tpword)kbi_segment_tp(with), false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* ---- a thread begins ------------------------------------------------------------------------- */

void kbi_meter_setup(void)
{
	if (!kbi_descriptor_table.charged)
		a_store_rlx(&kbi_meter_state, KBI_METER_STARTS);
	a_store_rlx(&kbi_meter_rests, kbi_tp_fast && a_load_rlx(&kbi_meter_state) != KBI_METER_ON);
}

void kbi_meter_main(struct kb_thread *t, struct kbi_worker *b)
{
	if (!kbi_descriptor_table.charged)
		return;
	a_store_rlx(kbi_meter_charged(&t->task), kbi_sys_clock(CLOCK_THREAD_CPUTIME_ID));
	if (b && a_load_rlx(&kbi_meter_state) == KBI_METER_ON)
		kbi_meter_pass(b, &t->task, true);
}

void kbi_meter_fresh(struct kb_thread *t)
{
	if (kbi_unlikely(a_load_rlx(&kbi_meter_state) != KBI_METER_OFF) && kbi_descriptor_table.charged)
		a_store_rlx(kbi_meter_charged(&t->task), 0);
}
