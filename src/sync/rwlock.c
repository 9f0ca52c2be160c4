/* sync/rwlock.c - readers-writer locks: one CAS to lock or unlock either way while nobody waits.
 *
 * Threads are handed the lock: whoever lets waiters in changes the word for them, so nobody barges past a
 * queue. PREFER_WRITER: first in, first out; readers that come while anybody waits queue behind it;
 * neighbouring readers enter together. So neither side starves. PREFER_READER: readers enter whenever no
 * writer is inside (a thread may take a read lock twice), writers only when nobody reads: a stream of
 * readers starves them.
 * Kernel threads that are no virtual processors are invited: the lock stays free until they come, and who runs
 * may take it before them, within what the kind allows. One that has come in vain too often or for too long is
 * handed it. Why: doc/why/scope.md.
 * Callers: everybody above. Calls waitq. Locking may switch, unlocking never. */
#include "sync/rwlock.h"

#include <errno.h>
#include <string.h>

#include "base/option.h"
#include "os/sys.h"
#include "sync/lost.h"

/* The word. Everybody: CAS from a value without QLOCK; the holder of QLOCK: plain stores. The upper bits
 * count the readers inside.
 *   WRITER         one is inside
 *   QLOCK          the queue is being worked on
 *   WAITERS        the queue is not empty
 *   READER_COMES   readers have been invited, and one of them at least has not come since
 *   WRITER_COMES   a writer has been, and has not
 * While one comes nobody else is invited. Law: whenever there are waiters somebody is inside or comes. */
enum {
	WRITER = 1,
	QLOCK = KBI_WAITQ_LOCK,
	WAITERS = KBI_WAITQ_SOME,
	READER_COMES = 8,
	WRITER_COMES = 16,
	READER = 32,
	COMES = READER_COMES | WRITER_COMES,
};
#define READERS_MAX (UINT32_MAX & ~(uint32_t)(READER - 1))

enum {
	LOSSES_MAX = 16,           /* invitations that may be in vain before a waiter is handed the lock */
	PATIENCE_NS = 1000 * 1000, /* or so long after the first such one */
};

/* Verdicts. INSIDE: the word counts it already. INVITED: it may try. */
enum { INSIDE = KBI_WNODE_GRANTED, INVITED };

struct waiter {
	struct kbi_wnode n; /* first */
	kb_rwlock_t *l;
	uint64_t since;     /* time of the first invitation in vain, ns */
	uint32_t takes;     /* READER or WRITER: what it adds to the word */
	uint8_t losses;     /* invitations in vain */
	bool on_vp;         /* its turn comes soon; a kernel thread's when the kernel likes */
	bool starving;      /* to be handed the lock, under the queue lock */
};

/* The waiter's own. */
struct visit {
	struct waiter w;
	bool ended; /* it has the lock, or has given up */
};

static inline a32 *word_of(kb_rwlock_t *l) { return (a32 *)&l->word; }
static inline a32 *writer_of(kb_rwlock_t *l) { return (a32 *)&l->writer; }
static inline struct kbi_waitq *queue_of(kb_rwlock_t *l) { return (struct kbi_waitq *)&l->head; }
static inline bool is_inside(uint32_t word) { return word & ~(uint32_t)(QLOCK | WAITERS | COMES); }

/* May somebody who comes now, uninvited, enter? The queue lock is looked at by the caller. With waiters and nobody inside
 * one is invited. */
static inline bool may_enter(const kb_rwlock_t *l, uint32_t word, uint32_t takes)
{
	if (takes == WRITER)
		return !is_inside(word);
	return !(word & WRITER) && (!(word & (WAITERS | WRITER_COMES)) || l->kind == KB_RWLOCK_PREFER_READER);
}

/* 0; EBUSY: not now; EAGAIN: too many readers. */
static inline int enter(kb_rwlock_t *l, uint32_t takes)
{
	uint32_t old = a_load_rlx(word_of(l));

	while (!(old & QLOCK) && may_enter(l, old, takes)) {
		if (kbi_unlikely(takes == READER && old >= READERS_MAX))
			return EAGAIN;
		/* acquire: partner is the release in kb_rwlock_unlock and kbi_waitq_unlock */
		if (kbi_likely(a_cas_acq(word_of(l), &old, old + takes)))
			return 0;
	}
	return EBUSY;
}

/* ---- letting waiters in ------------------------------------------------------------------------- */

/* May this waiter, whose turn it is, enter? */
static inline bool admissible(uint32_t word, const struct waiter *w)
{
	return w->takes == READER ? !(word & WRITER) : !is_inside(word);
}

static inline uint32_t coming(const struct waiter *w)
{
	return w->takes == READER ? READER_COMES : WRITER_COMES;
}

/* What a waiter gets now, all before it in the queue considered; 0: nothing. invited: somebody before it. */
static uint32_t verdict_for(const kb_rwlock_t *l, uint32_t word, const struct waiter *w, bool invited)
{
	if (!admissible(word, w))
		return 0;
	if (w->takes == WRITER ? invited : word & WRITER_COMES && l->kind != KB_RWLOCK_PREFER_READER)
		return 0;
	if (w->on_vp || w->starving)
		return INSIDE;
	return !(word & COMES) || (invited && w->takes == READER && word & READER_COMES) ? INVITED : 0;
}

/* Waiters that have been taken out of the queue, a chain for each verdict. */
struct guests {
	struct kbi_wnode *first[2], **end[2];
};

static inline void usher(kb_rwlock_t *l, struct guests *g, struct kbi_wnode *n, uint32_t verdict)
{
	struct kbi_wnode ***end = &g->end[verdict - INSIDE];

	kbi_waitq_take(queue_of(l), n);
	n->next = NULL;
	**end = n;
	*end = &n->next;
}

/* Takes all waiters out that may enter now, and counts them into *word; or one that is to be invited, with its neighbours
 * if they are readers. Under the queue lock. */
static void admit(kb_rwlock_t *l, uint32_t *word, struct guests *g)
{
	bool invited = false;

	*g = (struct guests){ { NULL, NULL }, { &g->first[0], &g->first[1] } };
	for (struct kbi_wnode *n = queue_of(l)->head, *next; n; n = next) {
		struct waiter *w = (struct waiter *)n;
		uint32_t verdict = verdict_for(l, *word, w, invited);

		next = n->next;
		if (!verdict && (l->kind != KB_RWLOCK_PREFER_READER || (*word & WRITER)))
			break;
		if (!verdict)
			continue;
		usher(l, g, n, verdict);
		invited |= verdict == INVITED;
		*word = verdict == INVITED ? *word | coming(w) : *word + w->takes;
	}
	*word = (*word & ~(uint32_t)WAITERS) | kbi_waitq_some(queue_of(l));
}

/* Not under the queue lock. */
static void welcome(const struct guests *g)
{
	kbi_waitq_grant_all(g->first[0], INSIDE);
	kbi_waitq_grant_all(g->first[1], INVITED);
}

/* The queue lock is left with this word, and whoever may go on by it does. Inside np brackets, which it leaves. */
static void let_in(kb_rwlock_t *l, uint32_t word, struct kbi_task *self)
{
	struct guests guests;

	admit(l, &word, &guests);
	kbi_waitq_unlock(word_of(l), word);
	welcome(&guests);
	kbi_np_leave(self);
}

/* ---- what a thread that was lost holds ------------------------------------------------------------- */

/* A lock knows its writer, and only the number of its readers. So, where threads can be lost, each notes what it reads, as
 * far as there is room: a reader has changed nothing, and its place is given back. */
enum { READS = 8 };

struct reads {
	kb_rwlock_t *lock[READS];
};

static aptr all_reads; /* struct reads[max_threads], by index; NULL: there were none */

static struct reads *map_reads(void)
{
	size_t bytes = kbi_options.max_threads * sizeof(struct reads);
	struct reads *all = kbi_sys_map(bytes);
	void *others = NULL;

	if (!all || a_cas_acqrel(&all_reads, &others, all))
		return all;
	kbi_sys_unmap(all, bytes);
	return others;
}

/* Self's own; NULL: there is no memory. */
static struct reads *reads_of(struct kbi_task *self)
{
	/* acquire: partner is the release in map_reads */
	struct reads *all = a_load_acq(&all_reads), *mine;

	if (kbi_unlikely(!all) && !(all = map_reads()))
		return NULL;
	if (self->index >= kbi_options.max_threads)
		return NULL;
	mine = &all[self->index];
	if (!kbi_thread_of(self)->reads) {
		memset(mine, 0, sizeof *mine);
		kbi_thread_of(self)->reads = true;
	}
	return mine;
}

static const struct kbi_lost_how how;

/* One more, or one less. */
static KBI_NOINLINE void note(kb_rwlock_t *from, kb_rwlock_t *to)
{
	struct reads *r = reads_of(kbi_waitq_self());

	kbi_lost_know(KBI_LOST_RWLOCK, &how);
	for (unsigned i = 0; r && i < READS; i++)
		if (r->lock[i] == from) {
			r->lock[i] = to;
			return;
		}
}

static struct kb_thread *lost_writer(kb_rwlock_t *l)
{
	uint32_t writer = a_load_rlx(writer_of(l));

	return writer ? kbi_lost_at(writer - 1) : NULL;
}

/* One who is inside leaves, if there is one. */
static void give_back(kb_rwlock_t *l, uint32_t gives, struct kbi_task *self)
{
	uint32_t word;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(l));
	if (is_inside(word) && !(word & WRITER) == (gives == READER)) {
		let_in(l, word - gives, self);
	} else {
		kbi_waitq_unlock(word_of(l), word);
		kbi_np_leave(self);
	}
}

/* Its writer is lost: it is unlocked, or that is no more so. */
static KBI_NOINLINE bool take_from_lost(kb_rwlock_t *l)
{
	struct kb_thread *t = lost_writer(l);
	uint32_t index;

	if (kbi_likely(!t))
		return false;
	kbi_lost_complain("readers-writer lock", l, t);
	index = t->task.index + 1;
	/* once: whoever does it has the lock to give back */
	if (!a_cas_rlx(writer_of(l), &index, 0))
		return false;
	give_back(l, WRITER, kbi_waitq_self());
	return true;
}

/* Somebody waits for it, and t is lost. */
static void wanted(void *l, const struct kb_thread *t)
{
	if (lost_writer(l) == t)
		take_from_lost(l);
}

static void held(struct kb_thread *t)
{
	struct reads *r = t->reads ? reads_of(&t->task) : NULL;

	for (unsigned i = 0; r && i < READS; i++)
		if (r->lock[i])
			give_back(r->lock[i], READER, &t->task);
}

static const struct kbi_lost_how how = { wanted, held };

static KBI_NOINLINE void want_slow(kb_rwlock_t *l, struct kbi_task *self)
{
	kbi_lost_say(self, l, KBI_LOST_RWLOCK, &how);
	a_fence_sc(); /* partner: the one in sync/lost's give_up */
	take_from_lost(l);
}

/* Before each sleep: what has run meanwhile may have waited for something, too. */
static inline void want(kb_rwlock_t *l, struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		want_slow(l, self);
}

/* ---- locking ------------------------------------------------------------------------------------- */

/* A waiter gives up; those behind it may be able to go on. */
static bool leave(void *lock, struct kbi_wnode *n)
{
	kb_rwlock_t *l = lock;
	struct kbi_task *self = n->task;
	uint32_t word;
	bool queued;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(l));
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued) {
		kbi_waitq_remove(queue_of(l), n);
		let_in(l, word, self);
	} else {
		kbi_waitq_unlock(word_of(l), word);
		kbi_np_leave(self);
	}
	return queued;
}

/* Enters (true) or queues w. */
static bool enter_or_queue(kb_rwlock_t *l, struct waiter *w)
{
	struct kbi_task *self = w->n.task;
	uint32_t word;
	bool in;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(l));
	in = may_enter(l, word, w->takes);
	if (in) {
		word += w->takes;
	} else {
		kbi_waitq_append(queue_of(l), &w->n);
		word |= WAITERS;
	}
	kbi_waitq_unlock(word_of(l), word);
	kbi_np_leave(self);
	return in;
}

/* An invited waiter comes in vain. */
static void lose(struct waiter *w)
{
	uint64_t now = kbi_sys_now();

	if (w->losses++ == 0)
		w->since = now;
	w->starving = w->losses >= LOSSES_MAX || now - w->since > PATIENCE_NS;
}

/* An invited waiter has come: enters (true) or queues again, in front. Then somebody is inside. */
static bool arrive(struct waiter *w)
{
	struct kbi_task *self = w->n.task;
	uint32_t word;
	bool in;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(w->l)) & ~coming(w);
	in = admissible(word, w);
	if (in) {
		word += w->takes;
	} else {
		lose(w);
		a_store_rlx(&w->n.state, KBI_WNODE_QUEUED);
		kbi_waitq_prepend(queue_of(w->l), &w->n);
		word |= WAITERS;
	}
	kbi_waitq_unlock(word_of(w->l), word);
	kbi_np_leave(self);
	return in;
}

static inline void want_no_more(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		kbi_lost_say_no_more(self);
}

/* Unwound by a handler of the program's: whoever was let in or invited meanwhile goes away. */
static void forsake(struct visit *v)
{
	struct waiter *w = &v->w;
	uint32_t verdict = a_load_rlx(&w->n.state), word;

	want_no_more(w->n.task);
	if (v->ended || (verdict != INSIDE && verdict != INVITED))
		return;
	kbi_np_enter(w->n.task);
	word = kbi_waitq_lock(word_of(w->l));
	let_in(w->l, verdict == INSIDE ? word - w->takes : word & ~coming(w), w->n.task);
}

static KBI_NOINLINE int lock_slow(kb_rwlock_t *l, uint32_t takes, struct kbi_task *self,
				  struct kbi_until until)
{
	struct visit v __attribute__((cleanup(forsake))) = { .w = { .n.task = self, .l = l, .takes = takes } };
	int rc = 0;

	v.w.on_vp = self->vp != NULL;
	v.ended = a_load_rlx(writer_of(l)) == self->index + 1;
	if (v.ended)
		return EDEADLK;
	v.ended = enter_or_queue(l, &v.w);
	while (!v.ended) {
		want(l, self);
		rc = kbi_waitq_await(&v.w.n, until, leave, l);
		v.ended = rc || a_load_rlx(&v.w.n.state) == INSIDE || arrive(&v.w);
	}
	return rc;
}

int kbi_rwlock_rdlock(kb_rwlock_t *l, struct kbi_until until)
{
	int rc = enter(l, READER);

	if (kbi_unlikely(rc == EBUSY))
		rc = lock_slow(l, READER, kbi_waitq_self(), until);
	if (kbi_unlikely(kbi_contain_on) && rc == 0)
		note(NULL, l);
	return rc;
}

int kbi_rwlock_wrlock(kb_rwlock_t *l, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	int rc = enter(l, WRITER);

	if (kbi_unlikely(rc == EBUSY))
		rc = lock_slow(l, WRITER, self, until);
	if (rc == 0)
		a_store_rlx(writer_of(l), self->index + 1);
	return rc;
}

int kb_rwlock_rdlock(kb_rwlock_t *l) { return kbi_rwlock_rdlock(l, kbi_waitq_until_handling(KBI_FOREVER)); }
int kb_rwlock_wrlock(kb_rwlock_t *l) { return kbi_rwlock_wrlock(l, kbi_waitq_until_handling(KBI_FOREVER)); }
int kb_rwlock_timedrdlock(kb_rwlock_t *l, uint64_t at) { return kbi_rwlock_rdlock(l, kbi_waitq_until_handling(at)); }
int kb_rwlock_timedwrlock(kb_rwlock_t *l, uint64_t at) { return kbi_rwlock_wrlock(l, kbi_waitq_until_handling(at)); }

static inline int try(kb_rwlock_t *l, uint32_t takes)
{
	int rc = enter(l, takes);

	if (kbi_unlikely(kbi_contain_on) && rc == EBUSY && take_from_lost(l))
		rc = enter(l, takes);
	return rc;
}

int kb_rwlock_tryrdlock(kb_rwlock_t *l)
{
	int rc = try(l, READER);

	if (kbi_unlikely(kbi_contain_on) && rc == 0)
		note(NULL, l);
	return rc;
}

int kb_rwlock_trywrlock(kb_rwlock_t *l)
{
	int rc = try(l, WRITER);

	if (rc == 0)
		a_store_rlx(writer_of(l), kbi_waitq_self()->index + 1);
	return rc;
}

/* ---- unlocking ------------------------------------------------------------------------------------ */

static KBI_NOINLINE void unlock_slow(kb_rwlock_t *l, uint32_t gives)
{
	struct kbi_task *self = kbi_waitq_self();

	kbi_np_enter(self);
	let_in(l, kbi_waitq_lock(word_of(l)) - gives, self);
}

int kb_rwlock_unlock(kb_rwlock_t *l)
{
	uint32_t old = a_load_rlx(word_of(l)), gives = old & WRITER ? WRITER : READER;

	if (kbi_unlikely(!is_inside(old)))
		return EPERM;
	if (gives == WRITER)
		a_store_rlx(writer_of(l), 0);
	else if (kbi_unlikely(kbi_contain_on))
		note(l, NULL);
	/* somebody to let in: only when the last one leaves, and nobody comes yet */
	while (!(old & QLOCK) && ((old & (WAITERS | COMES)) != WAITERS || is_inside(old - gives)))
		/* release: partner is the acquire in enter and kbi_waitq_lock */
		if (kbi_likely(a_cas_rel(word_of(l), &old, old - gives)))
			return 0;
	unlock_slow(l, gives);
	return 0;
}

void kbi_rwlock_orphan(kb_rwlock_t *l)
{
	*queue_of(l) = (struct kbi_waitq){ NULL, NULL };
	a_store_rlx(word_of(l), a_load_rlx(word_of(l)) & ~(uint32_t)(QLOCK | WAITERS | COMES));
}

/* ---- life ------------------------------------------------------------------------------------------ */

int kb_rwlock_init(kb_rwlock_t *l, enum kb_rwlock_kind kind)
{
	if ((unsigned)kind > KB_RWLOCK_PREFER_READER)
		return EINVAL;
	*l = (kb_rwlock_t)KB_RWLOCK_INIT;
	l->kind = kind;
	return 0;
}

/* EBUSY: it is locked. */
int kb_rwlock_destroy(kb_rwlock_t *l)
{
	return a_load_rlx(word_of(l)) ? EBUSY : 0;
}
