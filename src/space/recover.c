/* space/recover.c - cleaning up after a process. Contract in recover.h.
 * What it may have left half-done: a change under an object's lock, which is taken over then, the queues there
 * dropped, the rest made consistent by who knows the type; a wake-up decided and not told, which is told again, to all
 * who wait for anything. Runs on the watchman, or on the thread that attaches or detaches. */
#include "space/recover.h"

#include "os/sys.h"
#include "space/life.h"
#include "space/mutex.h"
#include "space/rwlock.h"

static bool is_dead(struct kb_space *s, uint32_t slot)
{
	struct kbi_space_proc *p = kbi_space_proc(s, slot);

	return kbi_space_life_is_over(a_load_rlx(&p->pid), a_load_rlx(&p->start));
}

/* The lock of an object, from a dead holder, too: true then. */
static bool take_over(struct kb_space *s, struct kbi_space_thing *t, uint32_t slot)
{
	for (unsigned n = 1;; n++) {
		uint32_t holder = a_load_rlx(&t->lock);
		/* PROCS + 1: one that attached and died; we have the file's lock, under which it was taken */
		bool dead = holder && (holder == slot + 1 || holder > KBI_SPACE_PROCS || (n % 1024 == 0 && is_dead(s, holder - 1)));

		/* acquire: partner is the release in kbi_space_queue_unlock; a dead one's stores are all there */
		if ((!holder || dead) && a_cas_acq(&t->lock, &holder, s->slot + 1))
			return dead;
		if (n % 16 == 0)
			kbi_sys_yield_to_holder(n / 16);
	}
}

/* Calls f for the records of a process. */
static void each_record(struct kb_space *s, uint32_t slot, void (*f)(struct kb_space *, struct kbi_space_record *, void *),
			void *arg)
{
	struct kbi_space_proc *p = kbi_space_proc(s, slot);
	uint32_t n = a_load_acq(&p->n_chunks);

	for (uint32_t c = 0; c < n; c++) {
		struct kbi_space_record *r = kbi_space_place(s, a_load_rlx(&p->chunk[c]));

		for (unsigned i = 0; i < KBI_SPACE_RECORDS; i++)
			f(s, &r[i], arg);
	}
}

static void forget(struct kb_space *s, struct kbi_space_record *r, void *arg)
{
	struct kbi_space_thing *t = arg;

	(void)s;
	if (a_load_rlx(&r->linked) && a_load_rlx(&r->object) == t->at)
		a_store_rlx(&r->linked, 0);
}

static void drop_queues(struct kb_space *s, struct kbi_space_thing *t)
{
	for (uint32_t p = 0; p < KBI_SPACE_PROCS; p++)
		each_record(s, p, forget, t);
	t->queue[0] = t->queue[1] = (struct kbi_space_queue){ .tail = 0 };
}

/* The lock was sound: only its own waiters leave. */
static void unlink_its(struct kb_space *s, struct kbi_space_thing *t, uint32_t slot)
{
	for (unsigned q = 0; q < 2; q++) {
		uint32_t ref = a_load_rlx(&t->queue[q].head);
		struct kbi_space_record *r;

		while ((r = kbi_space_record(s, ref))) {
			ref = a_load_rlx(&r->next);
			if (r->self >> 16 == slot + 1)
				kbi_space_queue_unlink(s, t, r);
		}
	}
}

static void orphan(struct kbi_space_thing *t, uint32_t slot, bool died)
{
	uint64_t bit = UINT64_C(1) << slot;
	uint32_t how;

	switch (t->type) {
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
		if (how >> 28 != KBI_SPACE_NOBODY && how >> 28 != KBI_SPACE_SELF && how >> 28 != KBI_SPACE_ASLEEP &&
		    (how >> 20 & 63) == slot)
			a_cas_rlx(&t->how, &how, KBI_SPACE_HOW(KBI_SPACE_NOBODY, 0, 0));
		kbi_space_thing_close(t, slot, 3, died);
		break;
	default:
		kbi_space_thing_close(t, slot, 3, died);
	}
}

static void clean(struct kb_space *s, struct kbi_space_thing *t, uint32_t slot, bool died)
{
	if (take_over(s, t, slot))
		drop_queues(s, t);
	else
		unlink_its(s, t, slot);
	orphan(t, slot, died);
	kbi_space_queue_unlock(t);
}

static void tell(struct kb_space *s, struct kbi_space_record *r, void *arg)
{
	(void)arg;
	if (a_load_rlx(&r->how) >> 28 == KBI_SPACE_NOBODY)
		return;
	a_add_acqrel(&r->word, 1); /* partner: the acquire in kbi_space_note_wait */
	kbi_space_note_tell_again(s, &r->how);
}

void kbi_space_recover(struct kb_space *s, uint32_t slot, bool died)
{
	struct kbi_space_head *h = s->head;
	struct kbi_space_proc *p = kbi_space_proc(s, slot);
	struct kbi_space_thing *t;
	uint64_t at;

	for (at = a_load_acq(&h->things); at; at = a_load_rlx(&t->next)) {
		t = kbi_space_place(s, at);
		clean(s, t, slot, died);
	}
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		if (i != slot && a_load_rlx(&kbi_space_proc(s, i)->state) != KBI_SPACE_FREE)
			each_record(s, i, tell, NULL);
	for (at = a_load_acq(&h->things); at; at = a_load_rlx(&t->next)) {
		t = kbi_space_place(s, at);
		if (t->type != KBI_SPACE_EVENT)
			continue;
		kbi_space_thing_wake(s, t);
		kbi_space_note_tell_again(s, &t->how);
	}
	/* one that has cleared a VP's flag may have died before it rang */
	for (uint32_t i = 0; i < KBI_SPACE_PROCS; i++)
		if (i != slot && a_load_rlx(&kbi_space_proc(s, i)->state) != KBI_SPACE_FREE)
			kbi_space_note_ring(kbi_space_proc(s, i));
	for (unsigned i = 0; i < KBI_SPACE_VPS; i++)
		a_store_rlx(&p->asleep[i], 0);
	if (died)
		a_store_rlx(&h->crashes, a_load_rlx(&h->crashes) + 1);
	a_store_rlx(&h->generation, a_load_rlx(&h->generation) + 1);
	/* release: partner is the acquire of who takes the entry */
	a_store_rel(&p->state, KBI_SPACE_FREE);
}
