/* space/recover.c - cleaning up after processes. Contract in recover.h.
 * Callers: member. Runs on the watchman, or on the thread that attaches or detaches.
 *
 * A process may have left half-done: a change under an object's lock, and a wake-up that was
 * decided and not told. Such a lock is taken over, the queues there are dropped, and the unit of
 * the type makes the rest consistent; the wake-up is told again, to all waiters of all objects. */
#include "space/recover.h"

#include "os/sys.h"
#include "space/life.h"
#include "space/mutex.h"
#include "space/rwlock.h"

enum { MOST_WAITERS = KBI_SPACE_PROCS * KBI_SPACE_CHUNKS * KBI_SPACE_RECORDS };

static bool is_dead_member(struct kb_space *s, uint32_t slot)
{
	struct kbi_space_proc *p = kbi_space_proc(s, slot);

	return kbi_space_life_is_over(a_load_rlx(&p->pid), a_load_rlx(&p->start));
}

static bool has_slot_bit(uint64_t slots, uint32_t slot)
{
	return slot < KBI_SPACE_PROCS && slots >> slot & 1;
}

/* Takes the lock of an object, also from a dead holder, or after a long time
 * from any holder: true then. */
static bool take_over_thing_lock(struct kb_space *s, struct kbi_space_thing *t, uint64_t slots,
	uint64_t until)
{
	for (unsigned n = 1;; n++) {
		uint32_t holder = a_load_rlx(&t->lock);
		/* PROCS + 1: a process that was attaching and died; the caller has the file's lock, under
		 * which that process took the object's lock */
		bool dead = holder &&
			(has_slot_bit(slots, holder - 1) || holder > KBI_SPACE_PROCS ||
			(n % 256 == 0 && (kbi_sys_now() >= until || is_dead_member(s, holder - 1))));

		/* acquire: pairs with the release in kbi_space_queue_unlock; all stores of
		 * a dead holder are visible */
		if ((!holder || dead) && a_cas_acq(&t->lock, &holder, s->slot + 1))
			return dead;
		if (n % 16 == 0)
			kbi_sys_yield_to_holder(n / 16);
	}
}

/* Calls f for the records of a process. */
static void each_record(struct kb_space *s, uint32_t slot,
	void (*f)(struct kb_space *, struct kbi_space_record *, void *), void *arg)
{
	struct kbi_space_proc *p = kbi_space_proc(s, slot);
	/* acquire: pairs with the release in add_chunk (queue.c) */
	uint32_t n = a_load_acq(&p->n_chunks);

	for (uint32_t c = 0; c < n && c < KBI_SPACE_CHUNKS; c++) {
		struct kbi_space_record *r =
			kbi_space_at(s, a_load_rlx(&p->chunk[c]), KBI_SPACE_RECORDS * sizeof *r);

		for (unsigned i = 0; r && i < KBI_SPACE_RECORDS; i++)
			f(s, &r[i], arg);
	}
}

static void clear_record_link(struct kb_space *s, struct kbi_space_record *r, void *arg)
{
	if (a_load_rlx(&r->linked) && a_load_rlx(&r->object) == kbi_space_offset(s, arg))
		a_store_rlx(&r->linked, 0);
}

static void drop_queues(struct kb_space *s, struct kbi_space_thing *t)
{
	for (uint32_t p = 0; p < KBI_SPACE_PROCS; p++)
		each_record(s, p, clear_record_link, t);
	t->queue[0] = t->queue[1] = (struct kbi_space_queue){ .tail = 0 };
}

/* Unlinks the waiters of those processes only: the lock was sound. */
static void unlink_slot_waiters(struct kb_space *s, struct kbi_space_thing *t, uint64_t slots)
{
	for (unsigned q = 0; q < 2; q++) {
		uint32_t ref = a_load_rlx(&t->queue[q].head), next;
		struct kbi_space_record *r;

		for (unsigned n = 0; n < MOST_WAITERS && (r = kbi_space_record(s, ref)); n++, ref = next) {
			next = a_load_rlx(&r->next);
			if (has_slot_bit(slots, (ref >> 16) - 1))
				kbi_space_queue_unlink(s, t, q, r);
		}
	}
}

static void orphan_thing(struct kbi_space_thing *t, uint32_t slot, bool died)
{
	uint64_t bit = UINT64_C(1) << slot;
	uint32_t how;

	switch (KBI_SPACE_ONCE(t->type)) {
	case KBI_SPACE_MUTEX:
		kbi_space_mutex_orphan(t, slot);
		break;
	case KBI_SPACE_RWLOCK:
		kbi_space_rwlock_orphan(t, slot);
		break;
	case KBI_SPACE_BARRIER:
		if (a_load_rlx(&t->ends[0]) & bit && died)
			a_or_rlx(&t->flags, KBI_SPACE_BROKEN);
		a_and_rlx(&t->ends[0], ~bit);
		break;
	case KBI_SPACE_EVENT:
		how = a_load_rlx(&t->how);
		if (how >> 28 != KBI_SPACE_NOBODY && how >> 28 != KBI_SPACE_SELF &&
				how >> 28 != KBI_SPACE_ASLEEP && (how >> 20 & 63) == slot)
			a_cas_rlx(&t->how, &how, KBI_SPACE_HOW(KBI_SPACE_NOBODY, 0, 0));
		kbi_space_thing_close(t, slot, 3, died);
		break;
	default:
		kbi_space_thing_close(t, slot, 3, died);
	}
}

static void clean_thing(struct kb_space *s, struct kbi_space_thing *t, uint64_t slots, bool died,
	uint64_t until)
{
	if (take_over_thing_lock(s, t, slots, until))
		drop_queues(s, t);
	else
		unlink_slot_waiters(s, t, slots);
	for (uint64_t left = slots; left; left &= left - 1)
		orphan_thing(t, (uint32_t)__builtin_ctzll(left), died);
	kbi_space_queue_unlock(t);
}

static void tell_record_again(struct kb_space *s, struct kbi_space_record *r, void *arg)
{
	(void)arg;
	if (a_load_rlx(&r->how) >> 28 == KBI_SPACE_NOBODY)
		return;
	/* release: pairs with the acquire in has_word_changed (note.c) */
	a_add_acqrel(&r->word, 1);
	kbi_space_note_tell_again(s, &r->how);
}

/* Goes through the chain and cleans each object, or (again) tells the waiters at events. */
static int each_thing(struct kb_space *s, uint64_t slots, bool died, bool again, uint64_t until)
{
	/* acquire: pairs with the release in make_thing (thing.c) */
	uint64_t at = a_load_acq(&s->head->things), below = UINT64_MAX;

	while (at) {
		struct kbi_space_thing *t = kbi_space_thing_at(s, at, below);

		if (!t || kbi_sys_now() >= until + KBI_SPACE_PATIENT)
			return EPROTO;
		if (!again) {
			clean_thing(s, t, slots, died, until);
		} else if (KBI_SPACE_ONCE(t->type) == KBI_SPACE_EVENT) {
			kbi_space_thing_wake_event(s, t);
			kbi_space_note_tell_again(s, &t->how);
		}
		below = at;
		at = a_load_rlx(&t->next);
	}
	return 0;
}

static bool is_other_member(const struct kb_space *s, uint32_t i, uint64_t slots)
{
	return !has_slot_bit(slots, i) &&
		a_load_rlx(&kbi_space_proc(s, i)->state) != KBI_SPACE_FREE;
}

static void free_entry(struct kbi_space_proc *p)
{
	for (unsigned i = 0; i < KBI_SPACE_VPS; i++)
		a_store_rlx(&p->asleep[i], 0);
	/* release: pairs with the acquire of state in take_table_entry (member.c) */
	a_store_rel(&p->state, KBI_SPACE_FREE);
}

int kbi_space_recover(struct kb_space *s, uint64_t slots, bool died)
{
	struct kbi_space_head *h = s->head;
	uint64_t until = kbi_sys_now() + KBI_SPACE_PATIENT;

	if (each_thing(s, slots, died, false, until))
		return EPROTO;
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		if (is_other_member(s, i, slots))
			each_record(s, i, tell_record_again, NULL);
	if (each_thing(s, slots, died, true, until))
		return EPROTO;
	/* a process that has cleared a VP's flag may have died before it rang */
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		if (is_other_member(s, i, slots))
			kbi_space_note_ring(kbi_space_proc(s, i));
	if (died)
		a_store_rlx(&h->crashes, a_load_rlx(&h->crashes) + (uint32_t)__builtin_popcountll(slots));
	a_store_rlx(&h->generation, a_load_rlx(&h->generation) + 1);
	for (uint64_t left = slots; left; left &= left - 1)
		free_entry(kbi_space_proc(s, (uint32_t)__builtin_ctzll(left)));
	return 0;
}
