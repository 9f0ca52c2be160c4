/* core/meter_read.c - when threads begin to be metered, and what they are told of it. Contract in meter.h. */
#include "core/meter_priv.h"

#include "os/sys.h"

enum { TRIES = 3 };

/* Kinds of the kernel's clocks; a process of ours is one kernel thread. */
enum { OF_THREAD = 6, OF_PROCESS = 2 };

/* Of a kernel thread of ours: its number, inverted, and what kind of clock that is. */
static uint64_t clock_of(uint32_t tid)
{
	return kbi_sys_clock((int)(~tid << 3 | (kbi_sys_from.processes ? OF_PROCESS : OF_THREAD)));
}

/* ---- start ------------------------------------------------------------------------------------------- */

/* Before the kernel thread itself writes its meter. */
static void begin(struct kbi_body *b, struct kbi_task *t)
{
	uint32_t tid = a_load_rlx(&b->tid);

	a_store_rlx(&b->meter.used, clock_of(tid));
	a_store_rlx(&b->meter.since, kbi_sys_now());
	a_store_rlx(&b->meter.tid, tid);
	a_store_rlx(&b->meter.whose, t);
}

/* That of the virtual processor that runs it; NULL: none does. */
static struct kbi_body *body_of(const struct kbi_task *t)
{
	uint64_t s = a_load_acq(&t->state); /* partner: whoever gives the descriptor its state */

	if (kbi_state_kind(s) != KBI_TASK_RUNNING)
		return NULL;
	return kbi_body_of_tid((int)a_load_rlx(&kbi_vps[kbi_state_vp(s)]->tid));
}

/* Those that run on virtual processors, and those that have a kernel thread to themselves for a call or for good. */
static void begin_all(void)
{
	struct kbi_task *t;
	struct kbi_body *b;

	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++) {
		t = &kbi_descriptor_at(i)->task;
		b = body_of(t);
		if (b)
			begin(b, t);
	}
	for (uint32_t i = 1, n = kbi_body_limit(); i <= n; i++) {
		b = &kbi_spare_bodies[i];
		t = a_load_rlx(&b->guest);
		if (t)
			begin(b, t);
	}
}

static void undo_segments(void)
{
	kbi_segment_stop();
	for (uint32_t i = 0, n = kbi_descriptor_limit(); i < n; i++)
		kbi_meter_undo_segment(&kbi_descriptor_at(i)->task);
}

/* Who has switched away before its kernel thread knew that it is metered. */
static void forget_gone(void)
{
	for (uint32_t i = 1, n = kbi_body_limit(); i <= n; i++) {
		struct kbi_body *b = &kbi_spare_bodies[i];
		void *t = a_load_rlx(&b->meter.whose);

		if (t && t != a_load_rlx(&b->guest) && body_of(t) != b)
			a_cas_rlx(&b->meter.whose, &t, NULL);
	}
}

bool kbi_meter_start(void)
{
	uint32_t off = KBI_METER_OFF;

	/* acquire and release: of several one goes on */
	if (kbi_likely(a_load_rlx(&kbi_meter_state) != off) || !a_cas_acqrel(&kbi_meter_state, &off, KBI_METER_STARTS))
		return kbi_descriptor_table.charged || !kbi_vp_n;
	if (kbi_vp_n && !kbi_descriptor_table.charged)
		return false;
	if (kbi_vp_n)
		begin_all();
	/* release: partner is the acquire in kbi_meter_is_on */
	a_store_rel(&kbi_meter_state, KBI_METER_ON);
	a_store_rlx(&kbi_meter_rests, 0);
	/* behind it who gives a descriptor, or has a block with one, sees that threads are metered; or they are seen here */
	a_fence_sc();
	if (kbi_vp_n) {
		undo_segments();
		forget_gone();
	}
	return true;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

uint64_t kbi_meter_self(struct kbi_task *self, bool handler)
{
	struct kbi_body *b = kbi_body_of_task(self);

	if (b && kbi_meter_is_on() && (!handler || a_load_rlx(&b->meter.whose) == self))
		kbi_meter_pass(b, self, true);
	kbi_meter_undo_segment(self); /* if it began when metering did */
	return a_load_rlx(kbi_meter_charged(self));
}

static const struct kbi_meter *running(const struct kb_thread *t)
{
	for (uint32_t i = 1, n = kbi_body_limit(); i <= n; i++)
		/* acquire: partner is the release in kbi_meter_pass */
		if (a_load_acq(&kbi_spare_bodies[i].meter.whose) == t)
			return &kbi_spare_bodies[i].meter;
	return NULL;
}

/* What its kernel thread has used since then; a turn that may be charged by the wall clock is not told, for that may come
 * to less. False: it was charged meanwhile. */
static bool add_turn(const struct kbi_meter *m, const struct kb_thread *t, uint64_t *ns)
{
	uint64_t used = a_load_rlx(&m->used), now = clock_of(a_load_rlx(&m->tid));

	/* acquire: as in running */
	if (a_load_acq(&m->whose) != t || a_load_rlx(&m->used) != used || a_load_rlx(kbi_meter_charged(&t->task)) != *ns)
		return false;
	if (now > used + 2 * KBI_METER_SHORT)
		*ns += now - used;
	return true;
}

uint64_t kbi_meter_read(const struct kb_thread *t)
{
	uint64_t ns = a_load_rlx(kbi_meter_charged(&t->task));

	for (int i = 0; i < TRIES; i++) {
		const struct kbi_meter *m = running(t);

		if (!m || add_turn(m, t, &ns))
			break;
		ns = a_load_rlx(kbi_meter_charged(&t->task));
	}
	return ns;
}
