/* sync/sem.c - counting semaphores. A token goes into the count, by one CAS, or straight to the first
 * waiter; count and waiters exclude each other, so the count's own word holds the queue's two bits.
 *
 * Post touches nothing of the semaphore after the step that lets a waiter go on: that thread may destroy
 * it. Post may be called from a signal handler that has interrupted anything, also this unit: who works
 * on a queue says so in a list of its kernel thread; a post that finds its own thread there leaves the
 * token in `late`, and the interrupted code gives it out when it has unlocked the queue.
 * Callers: everybody above, posts also by foreign threads. Calls waitq, domain. Wait may switch, post
 * never. */
#include "sync/sem.h"

#include <errno.h>

#include "core/domain.h"

/* The value word: a count of 0 .. KB_SEM_VALUE_MAX, or SOME (and QLOCK while the queue is worked on), which
 * means count 0. Everybody: CAS from a value without QLOCK; the holder of QLOCK: plain stores. */
#define SOME 0x80000000u
#define QLOCK 0x40000000u

static inline a32 *value_of(kb_sem_t *s) { return (a32 *)&s->value; }
static inline a32 *late_of(kb_sem_t *s) { return (a32 *)&s->word; }
static inline struct kbi_waitq *queue_of(kb_sem_t *s) { return (struct kbi_waitq *)&s->head; }

/* Work on a queue that this kernel thread has begun, newest first; more than one if handlers interrupted
 * it. Read and written by this kernel thread only, inside np brackets (the thread stays on it) and in
 * functions that are not inlined and do not switch. */
struct work {
	kb_sem_t *s;
	struct work *older;
};
static __thread struct work *works __attribute__((tls_model("initial-exec")));

static inline void begin(struct work *w, kb_sem_t *s)
{
	w->s = s;
	w->older = works;
	kbi_compiler_barrier();
	works = w;
	kbi_compiler_barrier();
}

static inline void end(const struct work *w)
{
	kbi_compiler_barrier();
	works = w->older;
	kbi_compiler_barrier();
}

/* Has a handler interrupted this thread's work on s? */
static KBI_NOINLINE bool is_interrupted(const kb_sem_t *s)
{
	const struct work *w = works;

	while (w && w->s != s)
		w = w->older;
	return w;
}

/* Holder of QLOCK: gives it back. */
static inline void unlock_queue(kb_sem_t *s)
{
	/* release: partner is the acquire of the CAS in take, put and lock_queued */
	a_store_rel(value_of(s), queue_of(s)->head ? SOME : 0);
}

/* ---- tokens ------------------------------------------------------------------------------------ */

/* Takes a token from the count. */
static inline bool take(kb_sem_t *s)
{
	uint32_t old = a_load_rlx(value_of(s));

	while (old != 0 && !(old & SOME))
		/* acquire: partner is the release in put; old - 1 is again a count */
		if (kbi_likely(a_cas_acq(value_of(s), &old, old - 1)))
			return true;
	return false;
}

/* Adds a token to the count if nobody waits: 0 or EOVERFLOW; EBUSY: somebody does. */
static inline int put(kb_sem_t *s)
{
	uint32_t old = a_load_rlx(value_of(s));

	while (!(old & SOME)) {
		if (kbi_unlikely(old == KB_SEM_VALUE_MAX))
			return EOVERFLOW;
		/* release: partner is the acquire in take */
		if (kbi_likely(a_cas_rel(value_of(s), &old, old + 1)))
			return 0;
	}
	return EBUSY;
}

/* One try to lock the queue from a value of 0 or SOME. Acquire: partner is the release in unlock_queue. */
static inline bool lock_queue(kb_sem_t *s, uint32_t from)
{
	return a_cas_acq(value_of(s), &from, SOME | QLOCK);
}

/* ---- giving tokens out -------------------------------------------------------------------------- */

/* A growing list of waiters to be woken. */
struct chain {
	struct kbi_wnode *first, **end;
};

static inline void chain_add(struct chain *c, struct kbi_wnode *n)
{
	n->next = NULL;
	*c->end = n;
	c->end = &n->next;
}

/* One try to take the first waiter out; NULL: there is none, or somebody else works on the queue. */
static inline struct kbi_wnode *take_waiter(kb_sem_t *s)
{
	struct kbi_wnode *n = NULL;
	struct work w;

	begin(&w, s);
	if (lock_queue(s, SOME)) {
		n = kbi_waitq_take_first(queue_of(s));
		unlock_queue(s);
	}
	end(&w);
	return n;
}

/* One try to give a token out: to the count, or to the first waiter, who goes to the chain. 0, EOVERFLOW,
 * or EBUSY: somebody else works on the queue. After a token for the count the semaphore may be gone; with one
 * for a waiter it stays until that is woken. */
static KBI_NOINLINE int try_give(kb_sem_t *s, struct chain *c)
{
	struct kbi_wnode *n;
	int rc = put(s);

	if (rc != EBUSY)
		return rc;
	n = take_waiter(s);
	if (!n)
		return EBUSY;
	chain_add(c, n);
	return 0;
}

/* Gives out what handlers have left while this thread worked on the queue. */
static inline void give_late(kb_sem_t *s, struct chain *c)
{
	while (kbi_unlikely(a_load_rlx(late_of(s)))) {
		/* acquire: partner is the release in post_slow */
		uint32_t n = a_xchg_acq(late_of(s), 0);

		for (; n > 0; n--)
			for (unsigned tries = 0; try_give(s, c) == EBUSY; tries++)
				kbi_waitq_pause(tries);
	}
}

/* Late tokens before its own one: its own may be the last touch. */
static int give(kb_sem_t *s, struct chain *c)
{
	for (unsigned tries = 0;; tries++) {
		struct kbi_wnode **before;
		int rc;

		give_late(s, c);
		before = c->end;
		rc = try_give(s, c);
		if (c->end != before)
			give_late(s, c);
		if (rc != EBUSY)
			return rc;
		kbi_waitq_pause(tries);
	}
}

static KBI_NOINLINE void settle_late(kb_sem_t *s)
{
	struct chain c = { NULL, &c.first };

	give_late(s, &c);
	kbi_waitq_grant_all(c.first, KBI_WNODE_GRANTED);
}

/* After a wait's work on the queue. The wait has not returned, so the semaphore is there. */
static inline void settle(kb_sem_t *s)
{
	if (kbi_unlikely(a_load_rlx(late_of(s))))
		settle_late(s);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

/* Takes a token (true) or queues n. */
static KBI_NOINLINE bool take_or_queue(kb_sem_t *s, struct kbi_wnode *n)
{
	for (unsigned tries = 0;; tries++) {
		uint32_t old = a_load_rlx(value_of(s));

		if (!(old & SOME) && old != 0) {
			if (take(s))
				return true;
		} else if (!(old & QLOCK) && lock_queue(s, old)) {
			kbi_waitq_append(queue_of(s), n);
			unlock_queue(s);
			return false;
		} else {
			kbi_waitq_pause(tries);
		}
	}
}

/* One try to queue n: there is no token, nobody works on the queue. */
static inline bool queue(kb_sem_t *s, struct kbi_wnode *n)
{
	uint32_t old = a_load_rlx(value_of(s));

	if (kbi_unlikely(old != 0 && old != SOME) || kbi_unlikely(!lock_queue(s, old)))
		return false;
	kbi_waitq_append(queue_of(s), n);
	/* release: as in unlock_queue */
	a_store_rel(value_of(s), SOME);
	return true;
}

/* Takes a token (true) or queues n. In a function with TLS that does not switch. */
static KBI_NOINLINE bool arrive(kb_sem_t *s, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	struct work w;
	bool taken;

	kbi_np_enter(self);
	begin(&w, s);
	taken = !kbi_likely(queue(s, n)) && take_or_queue(s, n);
	end(&w);
	settle(s);
	kbi_np_leave(self);
	return taken;
}

/* While n is QUEUED the value is SOME, with or without QLOCK. */
static bool remove_if_queued(kb_sem_t *s, struct kbi_wnode *n)
{
	bool queued;

	for (unsigned tries = 0; !lock_queue(s, SOME); tries++) {
		if (a_load_rlx(&n->state) != KBI_WNODE_QUEUED)
			return false;
		kbi_waitq_pause(tries);
	}
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued)
		kbi_waitq_remove(queue_of(s), n);
	unlock_queue(s);
	return queued;
}

static KBI_NOINLINE bool leave(void *s, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	struct work w;
	bool left;

	kbi_np_enter(self);
	begin(&w, s);
	left = remove_if_queued(s, n);
	end(&w);
	settle(s);
	kbi_np_leave(self);
	return left;
}

static KBI_SWITCHER int wait_asked(kb_sem_t *s, struct kbi_until until)
{
	struct kbi_wnode n;

	n.task = kbi_waitq_self();
	n.rank = 0;
	a_store_rlx(&n.state, KBI_WNODE_QUEUED);
	return arrive(s, &n) ? 0 : kbi_waitq_await_asked(&n, until, leave, s);
}

int kbi_sem_wait(kb_sem_t *s, struct kbi_until until)
{
	struct kbi_wnode n = { .task = NULL };

	if (take(s))
		return 0;
	n.task = kbi_waitq_self();
	return arrive(s, &n) ? 0 : kbi_waitq_await(&n, until, leave, s);
}

int kbi_sem_wait_asked(kb_sem_t *s, struct kbi_until until)
{
	return take(s) ? 0 : wait_asked(s, until);
}

int kb_sem_wait(kb_sem_t *s)
{
	return kbi_sem_wait_asked(s, kbi_waitq_until_handling(KBI_FOREVER));
}

int kb_sem_timedwait(kb_sem_t *s, uint64_t deadline)
{
	return kbi_sem_wait_asked(s, kbi_waitq_until_handling(deadline));
}

int kb_sem_trywait(kb_sem_t *s)
{
	return take(s) ? 0 : EAGAIN;
}

/* ---- posting ----------------------------------------------------------------------------------- */

/* In a handler that has interrupted library code: only the way round the board is open for wake-ups.
 * Also for a kernel thread without descriptor, which stays without: making one is not for handlers. */
static KBI_NOINLINE int post_in_handler(kb_sem_t *s)
{
	struct chain c = { NULL, &c.first };
	int rc;

	if (is_interrupted(s)) {
		/* release: partner is the acquire in give_late, of any thread that works on this queue */
		__atomic_fetch_add(&late_of(s)->v_, 1, __ATOMIC_RELEASE);
		return 0;
	}
	rc = give(s, &c);
	while (c.first) {
		struct kbi_wnode *n = c.first;
		struct kbi_task *t = n->task;

		c.first = n->next;
		/* release: partner is the acquire in kbi_waitq_await */
		a_store_rel(&n->state, KBI_WNODE_GRANTED);
		kbi_domain_wake_from_outside(t);
	}
	return rc;
}

/* Not as simple as one waiter to wake: n, if any, and what handlers have left. */
static KBI_NOINLINE int post_more(kb_sem_t *s, struct kbi_wnode *n)
{
	struct chain c = { NULL, &c.first };
	int rc = 0;

	if (n) {
		chain_add(&c, n);
		give_late(s, &c);
	} else {
		rc = give(s, &c);
	}
	kbi_waitq_grant_all(c.first, KBI_WNODE_GRANTED);
	return rc;
}

/* Somebody waits or did a moment ago. */
static KBI_NOINLINE int post_slow(kb_sem_t *s)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_wnode *n;
	int rc = 0;

	if (kbi_unlikely(!self || a_load_rlx(&self->np) > 0))
		return post_in_handler(s);
	kbi_np_enter(self);
	n = take_waiter(s);
	if (kbi_likely(n && !a_load_rlx(late_of(s))))
		kbi_waitq_grant_from(self, n, KBI_WNODE_GRANTED);
	else
		rc = post_more(s, n);
	kbi_np_leave(self);
	return rc;
}

int kbi_sem_post(kb_sem_t *s)
{
	int rc = put(s);

	return kbi_likely(rc != EBUSY) ? rc : post_slow(s);
}

int kb_sem_post(kb_sem_t *s)
{
	return kbi_sem_post(s);
}

uint32_t kb_sem_value(const kb_sem_t *s)
{
	uint32_t v = a_load_rlx((const a32 *)&s->value);

	return v & SOME ? 0 : v;
}

void kbi_sem_orphan(kb_sem_t *s)
{
	*queue_of(s) = (struct kbi_waitq){ NULL, NULL };
	if (a_load_rlx(value_of(s)) & SOME)
		a_store_rlx(value_of(s), a_load_rlx(late_of(s)));
	a_store_rlx(late_of(s), 0);
}

/* ---- life ---------------------------------------------------------------------------------------- */

int kb_sem_init(kb_sem_t *s, uint32_t value)
{
	if (value > KB_SEM_VALUE_MAX)
		return EINVAL;
	*s = (kb_sem_t)KB_SEM_INIT(value);
	return 0;
}

/* EBUSY: threads wait on it. */
int kb_sem_destroy(kb_sem_t *s)
{
	return a_load_rlx(value_of(s)) & SOME ? EBUSY : 0;
}
