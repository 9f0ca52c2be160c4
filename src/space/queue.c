/* space/queue.c - waiting at an object of a space. Contract in queue.h.
 * Callers: the objects, recover. Runs on the waiter's or the waker's stack; only
 * kbi_space_queue_do may switch. */
#include "space/queue.h"

#include <errno.h>

#include "os/lock.h"
#include "os/sys.h"
#include "space/file.h"

enum {
	TRIES_PER_YIELD = 128,
	CLOCK_AFTER = 8, /* tries: afterwards each try checks whether the deadline has passed */
	CHUNK = KBI_SPACE_RECORDS * sizeof(struct kbi_space_record),
	MOST_WAITERS = KBI_SPACE_PROCS * KBI_SPACE_CHUNKS * KBI_SPACE_RECORDS,
};

/* ns for which a thread that gives up tries to leave the queue; as KBI_SPACE_PATIENT and
 * KBI_SPACE_DOUBTFUL */
#define SOON UINT64_C(500000000)
#define SOON_DOUBTFUL UINT64_C(20000000)

/* ---- the lock -------------------------------------------------------------------------------- */

/* Returns whether a process exists that may hold the lock. */
static bool is_plausible_holder(const struct kb_space *s, uint32_t holder)
{
	return holder && holder <= KBI_SPACE_PROCS &&
		a_load_rlx(&kbi_space_proc(s, holder - 1)->state) != KBI_SPACE_FREE;
}

static bool grab_thing_lock(const struct kb_space *s, struct kbi_space_thing *t)
{
	uint32_t none = 0;

	/* acquire: pairs with the release in kbi_space_queue_unlock */
	return !a_load_rlx(&t->lock) && a_cas_acq(&t->lock, &none, s->slot + 1);
}

/* Waits for the lock. Its holder runs, or the holder's kernel thread has been preempted, or the
 * holder's process has died and is being cleaned up; or a process has written nonsense there. */
static int wait_for_lock(const struct kb_space *s, struct kbi_space_thing *t, uint64_t deadline,
	uint64_t patient, uint64_t doubtful)
{
	uint64_t began = 0;

	for (unsigned n = 1; !grab_thing_lock(s, t); n++) {
		uint64_t now;

		if (n % TRIES_PER_YIELD) {
			kbi_cpu_relax();
			continue;
		}
		now = kbi_sys_now();
		began = began ? began : now;
		if (deadline && now >= deadline)
			return ETIMEDOUT;
		if (now - began >=
				(is_plausible_holder(s, a_load_rlx(&t->lock)) ? patient : doubtful))
			return EPROTO;
		kbi_sys_yield_to_holder(n / TRIES_PER_YIELD);
	}
	return 0;
}

int kbi_space_queue_lock(struct kb_space *s, struct kbi_space_thing *t, uint64_t deadline)
{
	return kbi_likely(grab_thing_lock(s, t)) ? 0 :
		wait_for_lock(s, t, deadline, KBI_SPACE_PATIENT, KBI_SPACE_DOUBTFUL);
}

int kbi_space_queue_lock_soon(struct kb_space *s, struct kbi_space_thing *t)
{
	return wait_for_lock(s, t, 0, SOON, SOON_DOUBTFUL);
}

/* ---- the queues ------------------------------------------------------------------------------ */

void kbi_space_queue_link(struct kb_space *s, struct kbi_space_thing *t, unsigned queue,
	const struct kbi_space_seat *seat)
{
	struct kbi_space_queue *q = &t->queue[queue];
	uint32_t tail = KBI_SPACE_ONCE(q->tail);
	struct kbi_space_record *last = kbi_space_record(s, tail), *r = seat->r;

	r->queue = queue;
	a_store_rlx(&r->object, kbi_space_offset(s, t));
	a_store_rlx(&r->linked, 1);
	a_store_rlx(&r->next, 0);
	a_store_rlx(&r->prev, tail);
	if (last)
		a_store_rlx(&last->next, seat->ref);
	else
		a_store_rlx(&q->head, seat->ref);
	q->tail = seat->ref;
}

void kbi_space_queue_unlink(struct kb_space *s, struct kbi_space_thing *t, unsigned queue,
	struct kbi_space_record *r)
{
	struct kbi_space_queue *q = &t->queue[queue];
	uint32_t behind = a_load_rlx(&r->next), before = a_load_rlx(&r->prev);
	struct kbi_space_record *next = kbi_space_record(s, behind),
		*prev = kbi_space_record(s, before);

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

/* A queue that contains an unlinked record is damaged: it is dropped, so the loop ends. */
void kbi_space_queue_call(struct kbi_space_op *op, unsigned queue, unsigned n)
{
	struct kbi_space_queue *q = &op->t->queue[queue];
	unsigned most = MOST_WAITERS;
	uint32_t head;

	for (; n > 0 && (head = a_load_rlx(&q->head)); n--) {
		struct kbi_space_record *r = kbi_space_record(op->s, head);

		if (kbi_unlikely(!r || !a_load_rlx(&r->linked) || !most--)) {
			a_store_rlx(&q->head, 0);
			q->tail = 0;
			return;
		}
		kbi_space_queue_unlink(op->s, op->t, queue, r);
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
	/* release: pairs with the acquire in has_word_changed (note.c) */
	a_add_acqrel(&r->word, 1);
	kbi_space_note_tell(s, &r->how);
}

void kbi_space_queue_tell_called(struct kbi_space_op *op)
{
	for (unsigned i = 0; i < op->n_wakes; i++)
		kbi_space_queue_tell(op->s, op->wake[i]);
	op->n_wakes = 0;
}

/* ---- records --------------------------------------------------------------------------------- */

static void free_chunk(struct kb_space *s, unsigned chunk)
{
	struct kbi_space_record *r = a_load_rlx(&s->chunk[chunk]);

	for (unsigned i = KBI_SPACE_RECORDS; i-- > 0;) {
		uint32_t index = chunk * KBI_SPACE_RECORDS + i;

		r[i].self = (s->slot + 1) << 16 | index;
		a_store_rlx(&r[i].chain, 0);
		a_store_rlx(&r[i].linked, 0);
		a_store_rlx(&r[i].how, 0);
		s->behind[index] = (uint16_t)s->free;
		s->free = index + 1;
	}
}

/* Takes over the chunks that the entry has from an earlier process, as far as they are sound. */
void kbi_space_queue_reset(struct kb_space *s)
{
	struct kbi_space_proc *p = kbi_space_me(s);
	uint32_t n = a_load_rlx(&p->n_chunks);

	s->free = s->n_chunks = 0;
	a_store_rlx(&s->used, 0);
	for (; s->n_chunks < n && s->n_chunks < KBI_SPACE_CHUNKS; s->n_chunks++) {
		void *chunk = kbi_space_at(s, a_load_rlx(&p->chunk[s->n_chunks]), CHUNK);

		if (!chunk)
			break;
		a_store_rlx(&s->chunk[s->n_chunks], chunk);
	}
	if (s->n_chunks != n)
		a_store_rlx(&p->n_chunks, s->n_chunks);
	for (unsigned i = s->n_chunks; i-- > 0;)
		free_chunk(s, i);
}

static int add_chunk(struct kb_space *s)
{
	struct kbi_space_proc *p = kbi_space_me(s);
	uint32_t n = s->n_chunks;
	uint64_t at;
	int e = n == KBI_SPACE_CHUNKS ? EAGAIN : kbi_space_file_alloc(s, CHUNK, &at);

	if (e)
		return e;
	a_store_rlx(&s->chunk[n], kbi_space_place(s, at));
	s->n_chunks = n + 1;
	/* release: pairs with the acquire in kbi_space_record; n_chunks: in each_record (recover.c) */
	a_store_rel(&p->chunk[n], at);
	a_store_rel(&p->n_chunks, n + 1);
	free_chunk(s, n);
	return 0;
}

static int add_records(struct kb_space *s)
{
	int e = kbi_space_file_lock(s);

	if (e)
		return e;
	kbi_lock_take(&s->lock);
	e = s->free ? 0 : add_chunk(s);
	kbi_lock_leave(&s->lock);
	kbi_space_file_unlock(s);
	return e;
}

static bool pop_record(struct kb_space *s, struct kbi_space_seat *seat)
{
	uint32_t index;

	kbi_lock_take(&s->lock);
	index = s->free - 1;
	if (s->free) {
		s->free = s->behind[index];
		a_store_rlx(&s->used, a_load_rlx(&s->used) + 1);
	}
	kbi_lock_leave(&s->lock);
	if (index == UINT32_MAX)
		return false;
	seat->ref = (s->slot + 1) << 16 | index;
	seat->r = (struct kbi_space_record *)a_load_rlx(&s->chunk[index / KBI_SPACE_RECORDS]) +
		index % KBI_SPACE_RECORDS;
	return true;
}

int kbi_space_queue_get(struct kb_space *s, struct kbi_space_seat *seat)
{
	struct kbi_task *self = kbi_self();
	int e = 0;

	kbi_np_enter(self);
	while (!e && !pop_record(s, seat))
		e = add_records(s);
	kbi_np_leave(self);
	if (!e)
		a_store_rlx(&seat->r->chain, 0);
	return e;
}

static void return_record(struct kb_space *s, uint32_t index)
{
	struct kbi_task *self = kbi_self();

	kbi_np_enter(self);
	kbi_lock_take(&s->lock);
	if (index != UINT32_MAX) {
		s->behind[index] = (uint16_t)s->free;
		s->free = index + 1;
	}
	a_store_rlx(&s->used, a_load_rlx(&s->used) - 1);
	kbi_lock_leave(&s->lock);
	kbi_np_leave(self);
}

void kbi_space_queue_put(struct kb_space *s, const struct kbi_space_seat *seat)
{
	return_record(s, seat->ref & 0xffff);
}

void kbi_space_queue_retire(struct kb_space *s)
{
	return_record(s, UINT32_MAX);
}

/* ---- an operation ---------------------------------------------------------------------------- */

/* Makes a single try, with the lock, and releases the lock. */
static int try_locked_op(struct kbi_space_op *op, const struct kbi_space_seat *seat,
	uint64_t *word, bool last)
{
	int e;

	if (seat && a_load_rlx(&seat->r->linked))
		kbi_space_queue_unlink(op->s, op->t, op->queue, seat->r);
	e = op->try(op);
	op->tries++;
	if (e == EAGAIN && last && op->gave_up)
		op->gave_up(op);
	if (e == EAGAIN && !last && seat) {
		*word = a_load_rlx(&seat->r->word);
		kbi_space_queue_link(op->s, op->t, op->queue, seat);
	}
	kbi_space_queue_unlock(op->t);
	kbi_space_queue_tell_called(op);
	return e;
}

/* Locks and makes a single try; the seat, if there is one, leaves the queue first. If the
 * operation must wait, the seat stands in the queue again, and *word is its word before.
 * Without word it does not wait. */
static int lock_and_try_op(struct kbi_space_op *op, const struct kbi_space_seat *seat,
	uint64_t *word, uint64_t deadline)
{
	struct kbi_task *self = kbi_self();
	int e;

	kbi_np_enter(self);
	e = kbi_space_queue_lock(op->s, op->t, deadline);
	op->stuck = e;
	if (kbi_likely(!e))
		e = try_locked_op(op, seat, word, !word);
	kbi_np_leave(self);
	return e;
}

/* Ends the wait of a seat that has stood in the queue. */
static int end_op_wait(struct kbi_space_op *op, const struct kbi_space_seat *seat)
{
	struct kbi_task *self = kbi_self();
	int e;

	kbi_np_enter(self);
	e = kbi_space_queue_lock_soon(op->s, op->t);
	op->stuck = e;
	if (!e)
		e = try_locked_op(op, seat, NULL, true);
	kbi_np_leave(self);
	return e;
}

bool kbi_space_queue_is_late(unsigned tries, uint64_t deadline)
{
	return kbi_unlikely(tries > CLOCK_AFTER) && deadline != KB_FOREVER && kbi_sys_now() >= deadline;
}

static int run_waiting_op(struct kbi_space_op *op, const struct kbi_space_seat *seat,
	uint64_t deadline)
{
	bool queued = false;
	uint64_t word = 0;
	int e;

	do {
		e = lock_and_try_op(op, seat, &word, deadline);
		queued |= e == EAGAIN;
	} while (e == EAGAIN && !kbi_space_queue_is_late(op->tries, deadline) &&
		 !kbi_space_note_wait(op->s, &seat->r->word, &seat->r->how, word, deadline));
	if (e == EAGAIN || (op->stuck && queued))
		e = end_op_wait(op, seat);
	if (op->stuck && queued)
		kbi_space_queue_retire(op->s);
	else
		kbi_space_queue_put(op->s, seat);
	return e;
}

int kbi_space_queue_do(struct kbi_space_op *op, uint64_t deadline)
{
	struct kbi_space_seat seat;
	uint64_t word;
	int e;

	op->n_wakes = op->tries = 0;
	e = lock_and_try_op(op, NULL, deadline ? &word : NULL, deadline);
	if (e != EAGAIN || deadline == 0)
		return e == EAGAIN ? ETIMEDOUT : e;
	if (kbi_space_queue_get(op->s, &seat)) /* no room to wait */
		return lock_and_try_op(op, NULL, NULL, deadline);
	e = run_waiting_op(op, &seat, deadline);
	return e == EAGAIN ? ETIMEDOUT : e;
}
