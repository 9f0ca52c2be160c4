/* sync/rwlock.c - readers-writer locks: one CAS to lock or unlock either way while no thread waits.
 *
 * The lock is handed over: the thread that admits waiters changes the word for them, so no thread
 * barges past a queue. PREFER_WRITER: first in, first out; readers that come while any thread waits
 * queue behind it; neighbouring readers enter together. So neither side starves. PREFER_READER:
 * readers enter whenever no writer is inside (a thread may take a read lock twice), writers only
 * when no reader is inside: a stream of readers starves the writers.
 *
 * Kernel threads that are no virtual processors are invited instead: the lock stays free until they
 * come, and a running thread may take the lock before them, within what the kind allows. A waiter
 * that has come in vain too often or for too long is handed the lock. Why: doc/why/scope.md.
 * Callers: all rooms above. Calls waitq, lost. Locking may switch, unlocking never does. */
#include "sync/rwlock.h"

#include <errno.h>
#include <string.h>

#include "base/option.h"
#include "os/sys.h"
#include "sync/lost.h"

/* The word. Every thread changes it by CAS from a value without QLOCK; the holder of QLOCK uses
 * plain stores. The upper bits count the readers inside.
 *    WRITER         a writer is inside
 *    QLOCK          a thread works on the queue
 *    WAITERS        the queue is not empty
 *    READER_COMES   readers have been invited, and at least one has not come yet
 *    WRITER_COMES   a writer has been invited, and has not come yet
 * While an invited waiter is coming, no further waiter is invited. Law: whenever there are waiters,
 * a thread is inside or an invited waiter is coming. */
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
	LOSSES_MAX = 16, /* invitations that may be in vain before a waiter is handed the lock */
	PATIENCE_NS = 1000 * 1000, /* or this time after its first invitation in vain */
};

/* Verdicts. INSIDE: the word counts the waiter already. INVITED: the waiter may try. */
enum { INSIDE = KBI_WNODE_GRANTED, INVITED };

struct waiter {
	struct kbi_wnode n; /* first */
	kb_rwlock_t *l;
	uint64_t since;     /* time of the first invitation in vain, ns */
	uint32_t takes;     /* READER or WRITER: the value that the waiter adds to the word */
	uint8_t losses;     /* number of invitations in vain */
	/* the waiter runs soon after a grant; a kernel thread runs when the kernel decides */
	bool on_vp;
	bool starving;      /* the lock is to be handed over, under the queue lock */
};

/* A waiter's record on its own stack. */
struct visit {
	struct waiter w;
	bool ended; /* the thread has the lock, or has given up */
};

static inline a32 *rwlock_word(kb_rwlock_t *l) { return (a32 *)&l->word; }
static inline a32 *rwlock_writer(kb_rwlock_t *l) { return (a32 *)&l->writer; }
static inline struct kbi_waitq *rwlock_queue(kb_rwlock_t *l)
{
	return (struct kbi_waitq *)&l->head;
}

static inline bool is_inside(uint32_t word) { return word & ~(uint32_t)(QLOCK | WAITERS | COMES); }

/* Returns whether a thread that comes now, uninvited, may enter. The caller checks the queue lock.
 * With waiters and no thread inside, a waiter has been invited. */
static inline bool may_enter(const kb_rwlock_t *l, uint32_t word, uint32_t takes)
{
	if (takes == WRITER)
		return !is_inside(word);
	return !(word & WRITER) &&
		(!(word & (WAITERS | WRITER_COMES)) || l->kind == KB_RWLOCK_PREFER_READER);
}

/* Enters if that is allowed. Returns 0; EBUSY: not now; EAGAIN: too many readers. */
static inline int enter_rwlock(kb_rwlock_t *l, uint32_t takes)
{
	uint32_t old = a_load_rlx(rwlock_word(l));

	while (!(old & QLOCK) && may_enter(l, old, takes)) {
		if (kbi_unlikely(takes == READER && old >= READERS_MAX))
			return EAGAIN;
		/* acquire: pairs with the release in kb_rwlock_unlock and kbi_waitq_unlock */
		if (kbi_likely(a_cas_acq(rwlock_word(l), &old, old + takes)))
			return 0;
	}
	return EBUSY;
}

/* ---- letting waiters in ---------------------------------------------------------------------- */

/* Returns whether this waiter may enter when its turn has come. */
static inline bool is_admissible(uint32_t word, const struct waiter *w)
{
	return w->takes == READER ? !(word & WRITER) : !is_inside(word);
}

static inline uint32_t coming_bit(const struct waiter *w)
{
	return w->takes == READER ? READER_COMES : WRITER_COMES;
}

/* Returns the verdict for a waiter now, after all waiters before it in the queue; 0: nothing.
 * invited: a waiter before it has just been invited. */
static uint32_t verdict_for(const kb_rwlock_t *l, uint32_t word, const struct waiter *w,
	bool invited)
{
	if (!is_admissible(word, w))
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

static inline void move_to_guests(kb_rwlock_t *l, struct guests *g, struct kbi_wnode *n,
	uint32_t verdict)
{
	struct kbi_wnode ***end = &g->end[verdict - INSIDE];

	kbi_waitq_take(rwlock_queue(l), n);
	n->next = NULL;
	**end = n;
	*end = &n->next;
}

/* Takes out all waiters that may enter now, and counts them into *word; or takes out a waiter to be
 * invited, with its neighbours if they are readers. Under the queue lock. */
static void admit_waiters(kb_rwlock_t *l, uint32_t *word, struct guests *g)
{
	bool invited = false;

	*g = (struct guests){ { NULL, NULL }, { &g->first[0], &g->first[1] } };
	for (struct kbi_wnode *n = rwlock_queue(l)->head, *next; n; n = next) {
		struct waiter *w = (struct waiter *)n;
		uint32_t verdict = verdict_for(l, *word, w, invited);

		next = n->next;
		if (!verdict && (l->kind != KB_RWLOCK_PREFER_READER || (*word & WRITER)))
			break;
		if (!verdict)
			continue;
		move_to_guests(l, g, n, verdict);
		invited |= verdict == INVITED;
		*word = verdict == INVITED ? *word | coming_bit(w) : *word + w->takes;
	}
	*word = (*word & ~(uint32_t)WAITERS) | kbi_waitq_some(rwlock_queue(l));
}

/* Wakes the admitted waiters. Not under the queue lock. */
static void wake_guests(const struct guests *g)
{
	kbi_waitq_grant_all(g->first[0], INSIDE);
	kbi_waitq_grant_all(g->first[1], INVITED);
}

/* Releases the queue lock with this word, and wakes all waiters that the word admits. The caller is
 * inside np brackets, which this function leaves. */
static void unlock_and_let_in(kb_rwlock_t *l, uint32_t word, struct kbi_task *self)
{
	struct guests guests;

	admit_waiters(l, &word, &guests);
	kbi_waitq_unlock(rwlock_word(l), word);
	wake_guests(&guests);
	kbi_np_leave(self);
}

/* ---- locks of a lost thread ------------------------------------------------------------------ */

/* A lock knows its writer, but only the number of its readers. So, where threads can be lost,
 * each thread notes its read locks, as far as there is room. A reader has changed nothing:
 * its place is given back. */
enum { READS = 8 };

struct reads {
	kb_rwlock_t *lock[READS];
};

static aptr all_reads; /* struct reads[max_threads], by index; NULL: no read lock was noted yet */

static struct reads *map_reads(void)
{
	size_t bytes = kbi_options.max_threads * sizeof(struct reads);
	struct reads *all = kbi_sys_map(bytes);
	void *others = NULL;

	/* release: pairs with the acquire in reads_of */
	if (!all || a_cas_acqrel(&all_reads, &others, all))
		return all;
	kbi_sys_unmap(all, bytes);
	return others;
}

/* Returns the record of self; NULL: there is no memory. */
static struct reads *reads_of(struct kbi_task *self)
{
	/* acquire: pairs with the release in map_reads */
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

/* Notes a further read lock (from is NULL) or removes a note (to is NULL). */
static KBI_NOINLINE void note_read_lock(kb_rwlock_t *from, kb_rwlock_t *to)
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
	uint32_t writer = a_load_rlx(rwlock_writer(l));

	return writer ? kbi_lost_at(writer - 1) : NULL;
}

/* Unlocks in place of a thread that is inside, if there is such a thread. */
static void unlock_for_lost(kb_rwlock_t *l, uint32_t gives, struct kbi_task *self)
{
	uint32_t word;

	kbi_np_enter(self);
	word = kbi_waitq_lock(rwlock_word(l));
	if (is_inside(word) && !(word & WRITER) == (gives == READER)) {
		unlock_and_let_in(l, word - gives, self);
	} else {
		kbi_waitq_unlock(rwlock_word(l), word);
		kbi_np_leave(self);
	}
}

/* Unlocks the lock if its writer is lost. False: the writer is not lost,
 * or another thread unlocks. */
static KBI_NOINLINE bool take_rwlock_from_lost(kb_rwlock_t *l)
{
	struct kb_thread *t = lost_writer(l);
	uint32_t index;

	if (kbi_likely(!t))
		return false;
	kbi_lost_complain("readers-writer lock", l, t);
	index = t->task.index + 1;
	/* once: the thread whose CAS succeeds gives the lock back */
	if (!a_cas_rlx(rwlock_writer(l), &index, 0))
		return false;
	unlock_for_lost(l, WRITER, kbi_waitq_self());
	return true;
}

/* Gives the lock up because a thread waits for it, if the lost thread t holds it. */
static void on_rwlock_wanted(void *l, const struct kb_thread *t)
{
	if (lost_writer(l) == t)
		take_rwlock_from_lost(l);
}

static void give_back_lost_reads(struct kb_thread *t)
{
	struct reads *r = t->reads ? reads_of(&t->task) : NULL;

	for (unsigned i = 0; r && i < READS; i++)
		if (r->lock[i])
			unlock_for_lost(r->lock[i], READER, &t->task);
}

static const struct kbi_lost_how how = { on_rwlock_wanted, give_back_lost_reads };

static KBI_NOINLINE void announce_rwlock_wait_slow(kb_rwlock_t *l, struct kbi_task *self)
{
	kbi_lost_say(self, l, KBI_LOST_RWLOCK, &how);
	a_fence_sc(); /* sc: pairs with the fence in give_up_held_objects of sync/lost */
	take_rwlock_from_lost(l);
}

/* Announces the wait before each sleep: a handler that ran meanwhile may have waited for a
 * different object. */
static inline void announce_rwlock_wait(kb_rwlock_t *l, struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		announce_rwlock_wait_slow(l, self);
}

/* ---- locking --------------------------------------------------------------------------------- */

/* Ends the wait of a waiter that gives up; waiters behind it may then be able to go on. */
static bool leave_rwlock_queue(void *lock, struct kbi_wnode *n)
{
	kb_rwlock_t *l = lock;
	struct kbi_task *self = n->task;
	uint32_t word;
	bool queued;

	kbi_np_enter(self);
	word = kbi_waitq_lock(rwlock_word(l));
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued) {
		kbi_waitq_remove(rwlock_queue(l), n);
		unlock_and_let_in(l, word, self);
	} else {
		kbi_waitq_unlock(rwlock_word(l), word);
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
	word = kbi_waitq_lock(rwlock_word(l));
	in = may_enter(l, word, w->takes);
	if (in) {
		word += w->takes;
	} else {
		kbi_waitq_append(rwlock_queue(l), &w->n);
		word |= WAITERS;
	}
	kbi_waitq_unlock(rwlock_word(l), word);
	kbi_np_leave(self);
	return in;
}

/* Notes that an invited waiter has come in vain. */
static void note_vain_invitation(struct waiter *w)
{
	uint64_t now = kbi_sys_now();

	if (w->losses++ == 0)
		w->since = now;
	w->starving = w->losses >= LOSSES_MAX || now - w->since > PATIENCE_NS;
}

/* Enters (true) or queues an invited waiter again, in front. In the second
 * case a thread is inside. */
static bool enter_or_requeue(struct waiter *w)
{
	struct kbi_task *self = w->n.task;
	uint32_t word;
	bool in;

	kbi_np_enter(self);
	word = kbi_waitq_lock(rwlock_word(w->l)) & ~coming_bit(w);
	in = is_admissible(word, w);
	if (in) {
		word += w->takes;
	} else {
		note_vain_invitation(w);
		a_store_rlx(&w->n.state, KBI_WNODE_QUEUED);
		kbi_waitq_prepend(rwlock_queue(w->l), &w->n);
		word |= WAITERS;
	}
	kbi_waitq_unlock(rwlock_word(w->l), word);
	kbi_np_leave(self);
	return in;
}

static inline void end_rwlock_wait(struct kbi_task *self)
{
	if (kbi_unlikely(kbi_contain_on))
		kbi_lost_say_no_more(self);
}

/* Ends a wait that a handler of the program has unwound: leaves the lock or gives the invitation
 * back, if the waiter was admitted or invited meanwhile. */
static void abandon_visit(struct visit *v)
{
	struct waiter *w = &v->w;
	uint32_t verdict = a_load_rlx(&w->n.state), word;

	end_rwlock_wait(w->n.task);
	if (v->ended || (verdict != INSIDE && verdict != INVITED))
		return;
	kbi_np_enter(w->n.task);
	word = kbi_waitq_lock(rwlock_word(w->l));
	unlock_and_let_in(w->l, verdict == INSIDE ? word - w->takes : word & ~coming_bit(w),
		w->n.task);
}

static KBI_NOINLINE int lock_slow(kb_rwlock_t *l, uint32_t takes, struct kbi_task *self,
				  struct kbi_until until)
{
	struct visit v __attribute__((cleanup(abandon_visit))) =
		{ .w = { .n.task = self, .l = l, .takes = takes } };
	int rc = 0;

	v.w.on_vp = self->vp != NULL;
	v.ended = a_load_rlx(rwlock_writer(l)) == self->index + 1;
	if (v.ended)
		return EDEADLK;
	v.ended = enter_or_queue(l, &v.w);
	while (!v.ended) {
		announce_rwlock_wait(l, self);
		rc = kbi_waitq_await(&v.w.n, until, leave_rwlock_queue, l);
		v.ended = rc || a_load_rlx(&v.w.n.state) == INSIDE || enter_or_requeue(&v.w);
	}
	return rc;
}

int kbi_rwlock_rdlock(kb_rwlock_t *l, struct kbi_until until)
{
	int rc = enter_rwlock(l, READER);

	if (kbi_unlikely(rc == EBUSY))
		rc = lock_slow(l, READER, kbi_waitq_self(), until);
	if (kbi_unlikely(kbi_contain_on) && rc == 0)
		note_read_lock(NULL, l);
	return rc;
}

int kbi_rwlock_wrlock(kb_rwlock_t *l, struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	int rc = enter_rwlock(l, WRITER);

	if (kbi_unlikely(rc == EBUSY))
		rc = lock_slow(l, WRITER, self, until);
	if (rc == 0)
		a_store_rlx(rwlock_writer(l), self->index + 1);
	return rc;
}

int kb_rwlock_rdlock(kb_rwlock_t *l)
{
	return kbi_rwlock_rdlock(l, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_rwlock_wrlock(kb_rwlock_t *l)
{
	return kbi_rwlock_wrlock(l, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_rwlock_timedrdlock(kb_rwlock_t *l, uint64_t at)
{
	return kbi_rwlock_rdlock(l, kbi_waitq_until_handling(at));
}

int kb_rwlock_timedwrlock(kb_rwlock_t *l, uint64_t at)
{
	return kbi_rwlock_wrlock(l, kbi_waitq_until_handling(at));
}

static inline int try_rwlock(kb_rwlock_t *l, uint32_t takes)
{
	int rc = enter_rwlock(l, takes);

	if (kbi_unlikely(kbi_contain_on) && rc == EBUSY && take_rwlock_from_lost(l))
		rc = enter_rwlock(l, takes);
	return rc;
}

int kb_rwlock_tryrdlock(kb_rwlock_t *l)
{
	int rc = try_rwlock(l, READER);

	if (kbi_unlikely(kbi_contain_on) && rc == 0)
		note_read_lock(NULL, l);
	return rc;
}

int kb_rwlock_trywrlock(kb_rwlock_t *l)
{
	int rc = try_rwlock(l, WRITER);

	if (rc == 0)
		a_store_rlx(rwlock_writer(l), kbi_waitq_self()->index + 1);
	return rc;
}

/* ---- unlocking ------------------------------------------------------------------------------- */

static KBI_NOINLINE void unlock_slow(kb_rwlock_t *l, uint32_t gives)
{
	struct kbi_task *self = kbi_waitq_self();

	kbi_np_enter(self);
	unlock_and_let_in(l, kbi_waitq_lock(rwlock_word(l)) - gives, self);
}

int kb_rwlock_unlock(kb_rwlock_t *l)
{
	uint32_t old = a_load_rlx(rwlock_word(l)), gives = old & WRITER ? WRITER : READER;

	if (kbi_unlikely(!is_inside(old)))
		return EPERM;
	if (gives == WRITER)
		a_store_rlx(rwlock_writer(l), 0);
	else if (kbi_unlikely(kbi_contain_on))
		note_read_lock(l, NULL);
	/* a waiter is to be admitted only when the last thread leaves and no
	 * invited waiter is coming */
	while (!(old & QLOCK) && ((old & (WAITERS | COMES)) != WAITERS || is_inside(old - gives)))
		/* release: pairs with the acquire in enter_rwlock and kbi_waitq_lock */
		if (kbi_likely(a_cas_rel(rwlock_word(l), &old, old - gives)))
			return 0;
	unlock_slow(l, gives);
	return 0;
}

void kbi_rwlock_orphan(kb_rwlock_t *l)
{
	*rwlock_queue(l) = (struct kbi_waitq){ NULL, NULL };
	a_store_rlx(rwlock_word(l),
		a_load_rlx(rwlock_word(l)) & ~(uint32_t)(QLOCK | WAITERS | COMES));
}

/* ---- life ------------------------------------------------------------------------------------ */

int kb_rwlock_init(kb_rwlock_t *l, enum kb_rwlock_kind kind)
{
	if ((unsigned)kind > KB_RWLOCK_PREFER_READER)
		return EINVAL;
	*l = (kb_rwlock_t)KB_RWLOCK_INIT;
	l->kind = kind;
	return 0;
}

/* Returns EBUSY if the lock is held. */
int kb_rwlock_destroy(kb_rwlock_t *l)
{
	return a_load_rlx(rwlock_word(l)) ? EBUSY : 0;
}
