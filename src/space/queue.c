/* space/queue.c - waiting at an object of a space. Contract in queue.h. */
#include "space/queue.h"

#include <errno.h>

#include "os/lock.h"
#include "os/sys.h"
#include "space/file.h"

enum { TRIES_PER_YIELD = 128 };

/* ---- the lock ---------------------------------------------------------------------------------------- */

/* Its holder runs, or its kernel thread has been preempted, or its process has died and is being cleaned up. */
static void pause_for_lock(unsigned n)
{
	if (n % TRIES_PER_YIELD)
		kbi_cpu_relax();
	else
		kbi_sys_yield_to_holder(n / TRIES_PER_YIELD);
}

void kbi_space_queue_lock(struct kb_space *s, struct kbi_space_thing *t)
{
	uint32_t none = 0;

	/* acquire: partner is the release in kbi_space_queue_unlock */
	for (unsigned n = 1; a_load_rlx(&t->lock) || !a_cas_acq(&t->lock, &none, s->slot + 1); n++) {
		none = 0;
		pause_for_lock(n);
	}
}

/* ---- the queues -------------------------------------------------------------------------------------- */

void kbi_space_queue_link(struct kb_space *s, struct kbi_space_thing *t, unsigned queue, struct kbi_space_record *r)
{
	struct kbi_space_queue *q = &t->queue[queue];
	struct kbi_space_record *last = kbi_space_record(s, q->tail);

	r->queue = queue;
	a_store_rlx(&r->object, t->at);
	a_store_rlx(&r->linked, 1);
	a_store_rlx(&r->next, 0);
	a_store_rlx(&r->prev, q->tail);
	if (last)
		a_store_rlx(&last->next, r->self);
	else
		a_store_rlx(&q->head, r->self);
	q->tail = r->self;
}

void kbi_space_queue_unlink(struct kb_space *s, struct kbi_space_thing *t, struct kbi_space_record *r)
{
	struct kbi_space_queue *q = &t->queue[r->queue];
	uint32_t behind = a_load_rlx(&r->next), before = a_load_rlx(&r->prev);
	struct kbi_space_record *next = kbi_space_record(s, behind), *prev = kbi_space_record(s, before);

	if (prev)
		a_store_rlx(&prev->next, behind);
	else
		a_store_rlx(&q->head, behind);
	if (next)
		a_store_rlx(&next->prev, before);
	else
		q->tail = before;
	a_store_rlx(&r->linked, 0);
}

void kbi_space_queue_call(struct kbi_space_op *op, unsigned queue, unsigned n)
{
	struct kbi_space_record *r;

	for (; n > 0 && (r = kbi_space_record(op->s, a_load_rlx(&op->t->queue[queue].head))); n--) {
		kbi_space_queue_unlink(op->s, op->t, r);
		if (op->n_wakes < KBI_SPACE_WAKES)
			op->wake[op->n_wakes++] = r;
		else
			kbi_space_queue_tell(op->s, r);
	}
}

void kbi_space_queue_tell(struct kb_space *s, struct kbi_space_record *r)
{
	uint32_t chain = a_load_rlx(&r->chain);

	if (chain)
		r = kbi_space_record(s, chain);
	if (!r)
		return;
	a_add_acqrel(&r->word, 1); /* partner: the acquire in kbi_space_note_wait */
	kbi_space_note_tell(s, &r->how);
}

void kbi_space_queue_tell_called(struct kbi_space_op *op)
{
	for (unsigned i = 0; i < op->n_wakes; i++)
		kbi_space_queue_tell(op->s, op->wake[i]);
	op->n_wakes = 0;
}

/* ---- records ------------------------------------------------------------------------------------------- */

static void free_chunk(struct kb_space *s, unsigned chunk)
{
	struct kbi_space_record *r = kbi_space_place(s, a_load_rlx(&kbi_space_me(s)->chunk[chunk]));

	for (unsigned i = KBI_SPACE_RECORDS; i-- > 0;) {
		r[i].self = (s->slot + 1) << 16 | (chunk * KBI_SPACE_RECORDS + i);
		a_store_rlx(&r[i].chain, 0);
		a_store_rlx(&r[i].linked, 0);
		a_store_rlx(&r[i].how, 0);
		a_store_rlx(&r[i].next, s->free);
		s->free = r[i].self;
	}
}

void kbi_space_queue_reset(struct kb_space *s)
{
	s->free = 0;
	a_store_rlx(&s->used, 0);
	for (unsigned i = a_load_rlx(&kbi_space_me(s)->n_chunks); i-- > 0;)
		free_chunk(s, i);
}

static int more(struct kb_space *s)
{
	struct kbi_space_proc *p = kbi_space_me(s);
	uint64_t at;
	int e;

	kbi_space_file_lock(s);
	kbi_lock_take(&s->lock);
	e = s->free ? 0 : a_load_rlx(&p->n_chunks) == KBI_SPACE_CHUNKS ? EAGAIN :
		kbi_space_file_alloc(s, KBI_SPACE_RECORDS * sizeof(struct kbi_space_record), &at);
	if (!e && !s->free) {
		unsigned n = a_load_rlx(&p->n_chunks);

		/* release: partner is the acquire in kbi_space_record */
		a_store_rel(&p->chunk[n], at);
		a_store_rel(&p->n_chunks, n + 1);
		free_chunk(s, n);
	}
	kbi_lock_leave(&s->lock);
	kbi_space_file_unlock(s);
	return e;
}

static struct kbi_space_record *pop(struct kb_space *s)
{
	struct kbi_space_record *r;

	kbi_lock_take(&s->lock);
	r = kbi_space_record(s, s->free);
	if (r) {
		s->free = a_load_rlx(&r->next);
		a_store_rlx(&s->used, a_load_rlx(&s->used) + 1);
	}
	kbi_lock_leave(&s->lock);
	return r;
}

int kbi_space_queue_get(struct kb_space *s, struct kbi_space_record **r)
{
	struct kbi_task *self = kbi_self();
	int e = 0;

	kbi_np_enter(self);
	while (!e && !(*r = pop(s)))
		e = more(s);
	kbi_np_leave(self);
	if (!e)
		a_store_rlx(&(*r)->chain, 0);
	return e;
}

void kbi_space_queue_put(struct kb_space *s, struct kbi_space_record *r)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_lock_take(&s->lock);
	a_store_rlx(&r->next, s->free);
	s->free = r->self;
	a_store_rlx(&s->used, a_load_rlx(&s->used) - 1);
	kbi_lock_leave(&s->lock);
	kbi_np_leave(self);
}

/* ---- an operation --------------------------------------------------------------------------------------- */

/* One try; r, if there is one, leaves the queue first. If it must wait it stands there again, and *word is its word
 * before; last: it does not wait. */
static int attempt(struct kbi_space_op *op, struct kbi_space_record *r, uint64_t *word, bool last)
{
	struct kbi_task *self = kbi_self();
	int e;

	kbi_np_enter(self);
	kbi_space_queue_lock(op->s, op->t);
	if (r && a_load_rlx(&r->linked))
		kbi_space_queue_unlink(op->s, op->t, r);
	e = op->try(op);
	op->tries++;
	if (e == EAGAIN && last && op->gave_up)
		op->gave_up(op);
	if (e == EAGAIN && !last && r) {
		*word = a_load_rlx(&r->word);
		kbi_space_queue_link(op->s, op->t, op->queue, r);
	}
	kbi_space_queue_unlock(op->t);
	kbi_space_queue_tell_called(op);
	kbi_np_leave(self);
	return e;
}

int kbi_space_queue_do(struct kbi_space_op *op, uint64_t deadline)
{
	struct kbi_space_record *r;
	uint64_t word = 0;
	int e;

	op->n_wakes = op->tries = 0;
	e = attempt(op, NULL, NULL, deadline == 0);
	if (e != EAGAIN || deadline == 0)
		return e == EAGAIN ? ETIMEDOUT : e;
	if (kbi_space_queue_get(op->s, &r)) /* no room to wait */
		return attempt(op, NULL, NULL, true);
	while ((e = attempt(op, r, &word, false)) == EAGAIN)
		if (kbi_space_note_wait(op->s, &r->word, &r->how, word, deadline)) {
			e = attempt(op, r, NULL, true);
			break;
		}
	kbi_space_queue_put(op->s, r);
	return e == EAGAIN ? ETIMEDOUT : e;
}
