/* space/note.c - waiting for words in a space. Contract in note.h. */
#include "space/note.h"

#include <errno.h>

#include "base/option.h"
#include "core/agent.h"
#include "core/timer.h"
#include "os/sys.h"

static aptr spaces[KBI_SPACE_NOTE_AT_ONCE];

/* ---- a VP sleeps ------------------------------------------------------------------------------------- */

static void dozes(struct kbi_vp *vp, bool asleep)
{
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++) {
		/* acquire: partner is the release in enter */
		struct kb_space *s = a_load_acq(&spaces[i]);

		if (s && s->slot < KBI_SPACE_PROCS)
			a_store_rlx(&kbi_space_me(s)->asleep[vp->id % KBI_SPACE_VPS], asleep);
	}
}

bool kbi_space_note_enter(struct kb_space *s)
{
	kbi_agent_dozes = dozes;
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++) {
		if (a_load_rlx(&spaces[i]))
			continue;
		a_store_rel(&spaces[i], s);
		return true;
	}
	return false;
}

void kbi_space_note_leave(struct kb_space *s)
{
	for (unsigned i = 0; i < KBI_SPACE_NOTE_AT_ONCE; i++)
		if (a_load_rlx(&spaces[i]) == s)
			a_store_rlx(&spaces[i], NULL);
}

struct kb_space *kbi_space_note_space(unsigned i)
{
	return i < KBI_SPACE_NOTE_AT_ONCE ? a_load_acq(&spaces[i]) : NULL;
}

/* ---- waking ------------------------------------------------------------------------------------------- */

void kbi_space_note_ring(struct kbi_space_proc *p)
{
	a_add_acqrel(&p->ring, 1); /* partner: the listener's load before it sleeps there */
	kbi_sys_futex_wake_shared(&p->ring, 1);
}

void kbi_space_note_rouse(void)
{
	a_fence_sc(); /* partner: the sleeper's in agent.c */
	for (unsigned i = 0; i < kbi_vp_n; i++)
		if (a_load_rlx(&kbi_vps[i]->n_rung))
			kbi_vp_rouse(kbi_vps[i]);
}

void kbi_space_note_wake(struct kb_space *s, a32 *how, uint32_t h)
{
	struct kbi_space_proc *p = kbi_space_proc(s, h >> 20 & 63);
	struct kbi_space_record *r;

	switch (h >> 28) {
	case KBI_SPACE_WATCHED:
		if (a_load_rlx(&p->asleep[h % KBI_SPACE_VPS]) && a_xchg_acqrel(&p->asleep[h % KBI_SPACE_VPS], 0))
			kbi_space_note_ring(p);
		return;
	case KBI_SPACE_ASLEEP:
		if (a_cas_acqrel(how, &h, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0)))
			kbi_sys_futex_wake_shared(how, 1);
		return;
	case KBI_SPACE_CHAINED:
		r = kbi_space_record(s, ((h >> 20 & 63) + 1) << 16 | (h & 0xffff));
		if (!r)
			return;
		a_add_acqrel(&r->word, 1); /* partner: the acquire of its waiter */
		kbi_space_note_tell(s, &r->how);
		return;
	default:
		return;
	}
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static bool changed(a64 *word, uint64_t old)
{
	/* acquire: partner is the read-modify-write of who changes it */
	return a_load_acq(word) != old;
}

static void say(a32 *how, uint32_t h)
{
	if (a_load_rlx(how) == h)
		return;
	a_store_rlx(how, h);
	a_fence_sc(); /* partner: the waker's in note.h, after it has changed the word */
}

static int sleep_in_futex(a32 *how, uint64_t deadline)
{
	uint64_t now = deadline == KBI_FOREVER ? 0 : kbi_sys_now(), left = deadline - now;
	struct timespec ts = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };

	if (now >= deadline)
		return ETIMEDOUT;
	kbi_sys_futex_wait_shared(how, KBI_SPACE_HOW(KBI_SPACE_ASLEEP, 0, 0), deadline == KBI_FOREVER ? NULL : &ts);
	return 0;
}

/* A kernel thread polls, then sleeps. */
static int wait_alone(a64 *word, a32 *how, uint64_t old, uint64_t deadline)
{
	uint64_t until = 0;
	int e = 0;

	say(how, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0));
	for (unsigned i = 1; !changed(word, old); i++) {
		kbi_cpu_relax();
		if (i % 32)
			continue;
		if (!until)
			until = kbi_sys_now() + (uint64_t)kbi_options.spin_us * 1000;
		else if (kbi_sys_now() >= until || kbi_sys_now() >= deadline)
			break;
	}
	while (!changed(word, old) && !e) {
		say(how, KBI_SPACE_HOW(KBI_SPACE_ASLEEP, 0, 0));
		if (changed(word, old))
			break;
		e = sleep_in_futex(how, deadline);
	}
	a_store_rlx(how, KBI_SPACE_HOW(KBI_SPACE_SELF, 0, 0));
	return changed(word, old) ? 0 : e;
}

int kbi_space_note_wait(struct kb_space *s, a64 *word, a32 *how, uint64_t old, uint64_t deadline)
{
	struct kbi_task *self = kbi_self();
	struct kbi_watch w = { .word = word, .old = old, .size = 8, .rung = true, .task = self };
	int e = 0;

	if (!self->vp)
		return wait_alone(word, how, old, deadline);
	while (!changed(word, old)) {
		if (e == ETIMEDOUT)
			return e;
		kbi_np_enter(self);
		say(how, KBI_SPACE_HOW(KBI_SPACE_WATCHED, s->slot, self->vp->id % KBI_SPACE_VPS));
		kbi_domain_watch_add(self->vp, &w);
		e = kbi_timer_sleep(self, deadline);
		if (kbi_task_is(self, KBI_TASK_TIMED)) /* did not sleep: a permit was pending */
			kbi_domain_disarm(self->vp, kbi_thread_of(self));
		kbi_np_leave(self);
	}
	return 0;
}
