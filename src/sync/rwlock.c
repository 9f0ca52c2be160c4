/* sync/rwlock.c - readers-writer locks: one CAS to lock or unlock either way while nobody waits.
 *
 * The lock is handed over: whoever lets waiters in changes the word for them, so nobody barges past a
 * queue. PREFER_WRITER: first in, first out; readers that come while anybody waits queue behind it;
 * neighbouring readers enter together. So neither side starves. PREFER_READER: readers enter whenever no
 * writer is inside (a thread may take a read lock twice), writers only when nobody reads: a stream of
 * readers starves them.
 * Callers: everybody above. Calls waitq. Locking may switch, unlocking never. */
#include "sync/rwlock.h"

#include <errno.h>

/* The word. Everybody: CAS from a value without QLOCK; the holder of QLOCK: plain stores. The upper bits
 * count the readers inside. */
enum { WRITER = 1, QLOCK = KBI_WAITQ_LOCK, WAITERS = KBI_WAITQ_SOME, READER = 8 };
#define READERS_MAX (UINT32_MAX & ~(uint32_t)(READER - 1))

struct waiter {
	struct kbi_wnode n; /* first */
	uint32_t takes;     /* READER or WRITER: what it adds to the word */
};

static inline a32 *word_of(kb_rwlock_t *l) { return (a32 *)&l->word; }
static inline a32 *writer_of(kb_rwlock_t *l) { return (a32 *)&l->writer; }
static inline struct kbi_waitq *queue_of(kb_rwlock_t *l) { return (struct kbi_waitq *)&l->head; }
static inline bool is_inside(uint32_t word) { return word & ~(uint32_t)(QLOCK | WAITERS); }

/* May somebody who comes now enter? The queue lock is looked at by the caller. */
static inline bool may_enter(const kb_rwlock_t *l, uint32_t word, uint32_t takes)
{
	if (takes == WRITER)
		return !is_inside(word) && !(word & WAITERS);
	return !(word & WRITER) && (!(word & WAITERS) || l->kind == KB_RWLOCK_PREFER_READER);
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

/* May this waiter enter, all before it in the queue considered? */
static inline bool admissible(uint32_t word, const struct waiter *w)
{
	return w->takes == READER ? !(word & WRITER) : !is_inside(word);
}

/* Takes all waiters out that may enter now and counts them into *word; the chain. Under the queue lock. */
static struct kbi_wnode *admit(kb_rwlock_t *l, uint32_t *word)
{
	struct kbi_wnode *n = queue_of(l)->head, *first = NULL, **end = &first;

	while (n) {
		struct kbi_wnode *next = n->next;
		struct waiter *w = (struct waiter *)n;

		if (admissible(*word, w)) {
			kbi_waitq_take(queue_of(l), n);
			*word += w->takes;
			n->next = NULL;
			*end = n;
			end = &n->next;
		} else if (l->kind != KB_RWLOCK_PREFER_READER || (*word & WRITER)) {
			break;
		}
		n = next;
	}
	*word = (*word & ~(uint32_t)WAITERS) | kbi_waitq_some(queue_of(l));
	return first;
}

/* ---- locking ------------------------------------------------------------------------------------- */

/* A waiter gives up; those behind it may be able to go on. */
static bool leave(void *lock, struct kbi_wnode *n)
{
	kb_rwlock_t *l = lock;
	struct kbi_task *self = n->task;
	struct kbi_wnode *chain = NULL;
	uint32_t word;
	bool queued;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(l));
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued) {
		kbi_waitq_remove(queue_of(l), n);
		chain = admit(l, &word);
	}
	kbi_waitq_unlock(word_of(l), word);
	kbi_waitq_grant_all(chain, KBI_WNODE_GRANTED);
	kbi_np_leave(self);
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

static KBI_NOINLINE int lock_slow(kb_rwlock_t *l, uint32_t takes, struct kbi_task *self,
				  struct kbi_until until)
{
	struct waiter w = { .n.task = self, .takes = takes };

	if (a_load_rlx(writer_of(l)) == self->index + 1)
		return EDEADLK;
	if (enter_or_queue(l, &w))
		return 0;
	return kbi_waitq_await(&w.n, until, leave, l);
}

int kbi_rwlock_rdlock(kb_rwlock_t *l, struct kbi_until until)
{
	int rc = enter(l, READER);

	return kbi_likely(rc != EBUSY) ? rc : lock_slow(l, READER, kbi_waitq_self(), until);
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

int kb_rwlock_rdlock(kb_rwlock_t *l) { return kbi_rwlock_rdlock(l, kbi_waitq_until(KBI_FOREVER)); }
int kb_rwlock_wrlock(kb_rwlock_t *l) { return kbi_rwlock_wrlock(l, kbi_waitq_until(KBI_FOREVER)); }
int kb_rwlock_timedrdlock(kb_rwlock_t *l, uint64_t at) { return kbi_rwlock_rdlock(l, kbi_waitq_until(at)); }
int kb_rwlock_timedwrlock(kb_rwlock_t *l, uint64_t at) { return kbi_rwlock_wrlock(l, kbi_waitq_until(at)); }
int kb_rwlock_tryrdlock(kb_rwlock_t *l) { return enter(l, READER); }

int kb_rwlock_trywrlock(kb_rwlock_t *l)
{
	int rc = enter(l, WRITER);

	if (rc == 0)
		a_store_rlx(writer_of(l), kbi_waitq_self()->index + 1);
	return rc;
}

/* ---- unlocking ------------------------------------------------------------------------------------ */

static KBI_NOINLINE void unlock_slow(kb_rwlock_t *l, uint32_t gives)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_wnode *chain;
	uint32_t word;

	kbi_np_enter(self);
	word = kbi_waitq_lock(word_of(l)) - gives;
	chain = admit(l, &word);
	kbi_waitq_unlock(word_of(l), word);
	kbi_waitq_grant_all(chain, KBI_WNODE_GRANTED);
	kbi_np_leave(self);
}

int kb_rwlock_unlock(kb_rwlock_t *l)
{
	uint32_t old = a_load_rlx(word_of(l)), gives = old & WRITER ? WRITER : READER;

	if (kbi_unlikely(!is_inside(old)))
		return EPERM;
	if (gives == WRITER)
		a_store_rlx(writer_of(l), 0);
	/* somebody to let in: only when the last one leaves */
	while (!(old & QLOCK) && (!(old & WAITERS) || is_inside(old - gives)))
		/* release: partner is the acquire in enter and kbi_waitq_lock */
		if (kbi_likely(a_cas_rel(word_of(l), &old, old - gives)))
			return 0;
	unlock_slow(l, gives);
	return 0;
}

void kbi_rwlock_orphan(kb_rwlock_t *l)
{
	*queue_of(l) = (struct kbi_waitq){ NULL, NULL };
	a_store_rlx(word_of(l), a_load_rlx(word_of(l)) & ~(uint32_t)(QLOCK | WAITERS));
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
