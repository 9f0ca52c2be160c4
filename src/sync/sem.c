/* sync/sem.c - counting semaphores. A token goes into the count, by one CAS, or straight to the
 * first waiter. Count and waiters exclude each other, so the count's own word holds the queue's two
 * bits. Post touches nothing of the semaphore after the step that lets a waiter go on: that thread
 * may destroy the semaphore.
 *
 * Post may be called from a signal handler that has interrupted any code, also this unit. A thread
 * that works on a queue is listed at its kernel thread; a post that finds its own thread in the
 * list leaves the token in `late`, and the interrupted code gives the token out when it has
 * unlocked the queue.
 * Callers: all rooms above; foreign threads post, too. Calls waitq, domain.
 * Wait may switch, post never. */
#include "sync/sem.h"

#include <errno.h>

#include "core/domain.h"

/* The value word: a count of 0 .. KB_SEM_VALUE_MAX, or SOME (with QLOCK while a thread works on the
 * queue), which means count 0. Every thread changes it by CAS from a value without QLOCK; the
 * holder of QLOCK uses plain stores. */
#define SOME 0x80000000u
#define QLOCK 0x40000000u

static inline a32 *sem_value(kb_sem_t *s) { return (a32 *)&s->value; }
static inline a32 *sem_late_tokens(kb_sem_t *s) { return (a32 *)&s->word; }
static inline struct kbi_waitq *sem_queue(kb_sem_t *s) { return (struct kbi_waitq *)&s->head; }

/* Work on a queue that this kernel thread has begun, newest first; more than one item if handlers
 * interrupted such work. Only this kernel thread reads and writes the list, inside np brackets (the
 * thread stays on the kernel thread) and in functions that are not inlined and do not switch. */
struct work {
	kb_sem_t *s;
	struct work *older;
};
static __thread struct work *works __attribute__((tls_model("initial-exec")));

static inline void begin_queue_work(struct work *w, kb_sem_t *s)
{
	w->s = s;
	w->older = works;
	kbi_compiler_barrier();
	works = w;
	kbi_compiler_barrier();
}

static inline void end_queue_work(const struct work *w)
{
	kbi_compiler_barrier();
	works = w->older;
	kbi_compiler_barrier();
}

/* Returns whether a handler has interrupted this thread's work on s. */
static KBI_NOINLINE bool is_interrupted(const kb_sem_t *s)
{
	const struct work *w = works;

	while (w && w->s != s)
		w = w->older;
	return w;
}

/* Releases the queue lock. The caller holds QLOCK. */
static inline void unlock_queue(kb_sem_t *s)
{
	/* release: pairs with the acquire of the CAS in take_token and lock_queue */
	a_store_rel(sem_value(s), sem_queue(s)->head ? SOME : 0);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* Takes a token from the count. False: the count is 0. */
static inline bool take_token(kb_sem_t *s)
{
	uint32_t old = a_load_rlx(sem_value(s));

	while (old != 0 && !(old & SOME))
		/* acquire: pairs with the release in put_token; old - 1 is again a count */
		if (kbi_likely(a_cas_acq(sem_value(s), &old, old - 1)))
			return true;
	return false;
}

/* Adds a token to the count if no thread waits. Returns 0, EOVERFLOW, or EBUSY: a thread waits. */
static inline int put_token(kb_sem_t *s)
{
	uint32_t old = a_load_rlx(sem_value(s));

	while (!(old & SOME)) {
		if (kbi_unlikely(old == KB_SEM_VALUE_MAX))
			return EOVERFLOW;
		/* release: pairs with the acquire in take_token */
		if (kbi_likely(a_cas_rel(sem_value(s), &old, old + 1)))
			return 0;
	}
	return EBUSY;
}

/* Tries once to lock the queue from a value of 0 or SOME. acquire: pairs with the
 * release in unlock_queue. */
static inline bool lock_queue(kb_sem_t *s, uint32_t from)
{
	return a_cas_acq(sem_value(s), &from, SOME | QLOCK);
}

/* ---- giving tokens out ----------------------------------------------------------------------- */

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

/* Tries once to take the first waiter out. NULL: there is none, or another
 * thread works on the queue. */
static inline struct kbi_wnode *take_waiter(kb_sem_t *s)
{
	struct kbi_wnode *n = NULL;
	struct work w;

	begin_queue_work(&w, s);
	if (lock_queue(s, SOME)) {
		n = kbi_waitq_take_first(sem_queue(s));
		unlock_queue(s);
	}
	end_queue_work(&w);
	return n;
}

/* Tries once to give a token out: to the count, or to the first waiter, which goes to the
 * chain. Returns 0, EOVERFLOW, or EBUSY: another thread works on the queue. After a token
 * for the count the semaphore may be gone; with a token for a waiter the semaphore stays
 * until that waiter is woken. */
static KBI_NOINLINE int try_give(kb_sem_t *s, struct chain *c)
{
	struct kbi_wnode *n;
	int rc = put_token(s);

	if (rc != EBUSY)
		return rc;
	n = take_waiter(s);
	if (!n)
		return EBUSY;
	chain_add(c, n);
	return 0;
}

/* Gives out the tokens that handlers have left while this thread worked on the queue. */
static inline void give_late(kb_sem_t *s, struct chain *c)
{
	while (kbi_unlikely(a_load_rlx(sem_late_tokens(s)))) {
		/* acquire: pairs with the release in post_in_handler */
		uint32_t n = a_xchg_acq(sem_late_tokens(s), 0);

		for (; n > 0; n--)
			for (unsigned tries = 0; try_give(s, c) == EBUSY; tries++)
				kbi_waitq_pause(tries);
	}
}

/* Gives out the late tokens, then the caller's own: its own may be the
 * last touch of the semaphore. */
static int give_token(kb_sem_t *s, struct chain *c)
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

static KBI_NOINLINE void settle_late_slow(kb_sem_t *s)
{
	struct chain c = { NULL, &c.first };

	give_late(s, &c);
	kbi_waitq_grant_all(c.first, KBI_WNODE_GRANTED);
}

/* Gives out late tokens after a wait's work on the queue. The wait has not returned, so the
 * semaphore exists. */
static inline void settle_late_tokens(kb_sem_t *s)
{
	if (kbi_unlikely(a_load_rlx(sem_late_tokens(s))))
		settle_late_slow(s);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Takes a token (true) or queues n. */
static KBI_NOINLINE bool take_or_queue(kb_sem_t *s, struct kbi_wnode *n)
{
	for (unsigned tries = 0;; tries++) {
		uint32_t old = a_load_rlx(sem_value(s));

		if (!(old & SOME) && old != 0) {
			if (take_token(s))
				return true;
		} else if (!(old & QLOCK) && lock_queue(s, old)) {
			kbi_waitq_append(sem_queue(s), n);
			unlock_queue(s);
			return false;
		} else {
			kbi_waitq_pause(tries);
		}
	}
}

/* Tries once to queue n. Succeeds if there is no token and no thread works on the queue. */
static inline bool try_queue_waiter(kb_sem_t *s, struct kbi_wnode *n)
{
	uint32_t old = a_load_rlx(sem_value(s));

	if (kbi_unlikely(old != 0 && old != SOME) || kbi_unlikely(!lock_queue(s, old)))
		return false;
	kbi_waitq_append(sem_queue(s), n);
	/* release: pairs with the acquire in lock_queue, as in unlock_queue */
	a_store_rel(sem_value(s), SOME);
	return true;
}

/* Takes a token (true) or queues n. Uses TLS, therefore not inlined, and does not switch. */
static KBI_NOINLINE bool enter_sem_queue(kb_sem_t *s, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	struct work w;
	bool taken;

	kbi_np_enter(self);
	begin_queue_work(&w, s);
	taken = !kbi_likely(try_queue_waiter(s, n)) && take_or_queue(s, n);
	end_queue_work(&w);
	settle_late_tokens(s);
	kbi_np_leave(self);
	return taken;
}

/* Unlinks n if it is QUEUED. While n is QUEUED the value is SOME, with or without QLOCK. */
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
		kbi_waitq_remove(sem_queue(s), n);
	unlock_queue(s);
	return queued;
}

static KBI_NOINLINE bool leave_sem_queue(void *s, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	struct work w;
	bool left;

	kbi_np_enter(self);
	begin_queue_work(&w, s);
	left = remove_if_queued(s, n);
	end_queue_work(&w);
	settle_late_tokens(s);
	kbi_np_leave(self);
	return left;
}

static KBI_SWITCHER int wait_asked(kb_sem_t *s, struct kbi_until until)
{
	struct kbi_wnode n;

	n.task = kbi_waitq_self();
	n.rank = 0;
	a_store_rlx(&n.state, KBI_WNODE_QUEUED);
	return enter_sem_queue(s, &n) ? 0 : kbi_waitq_await_asked(&n, until, leave_sem_queue, s);
}

int kbi_sem_wait(kb_sem_t *s, struct kbi_until until)
{
	struct kbi_wnode n = { .task = NULL };

	if (take_token(s))
		return 0;
	n.task = kbi_waitq_self();
	return enter_sem_queue(s, &n) ? 0 : kbi_waitq_await(&n, until, leave_sem_queue, s);
}

int kbi_sem_wait_asked(kb_sem_t *s, struct kbi_until until)
{
	return take_token(s) ? 0 : wait_asked(s, until);
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
	return take_token(s) ? 0 : EAGAIN;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* Posts in a handler that has interrupted library code: there only wake-ups by way of the
 * board are safe. Also for a kernel thread without descriptor, which stays without: a handler
 * must not make a descriptor. */
static KBI_NOINLINE int post_in_handler(kb_sem_t *s)
{
	struct chain c = { NULL, &c.first };
	int rc;

	if (is_interrupted(s)) {
		/* release: pairs with the acquire in give_late, of any thread that works on this queue */
		__atomic_fetch_add(&sem_late_tokens(s)->v_, 1, __ATOMIC_RELEASE);
		return 0;
	}
	rc = give_token(s, &c);
	while (c.first) {
		struct kbi_wnode *n = c.first;
		struct kbi_task *t = n->task;

		c.first = n->next;
		/* release: pairs with the acquire in kbi_waitq_await */
		a_store_rel(&n->state, KBI_WNODE_GRANTED);
		kbi_domain_wake_from_outside(t);
	}
	return rc;
}

/* Posts where there is more to do than to wake one waiter. n: a waiter taken already, or NULL.
 * Gives out late tokens, too. */
static KBI_NOINLINE int post_more(kb_sem_t *s, struct kbi_wnode *n)
{
	struct chain c = { NULL, &c.first };
	int rc = 0;

	if (n) {
		chain_add(&c, n);
		give_late(s, &c);
	} else {
		rc = give_token(s, &c);
	}
	kbi_waitq_grant_all(c.first, KBI_WNODE_GRANTED);
	return rc;
}

/* Posts where a thread waits or did a moment ago. */
static KBI_NOINLINE int post_slow(kb_sem_t *s)
{
	struct kbi_task *self = kbi_self_raw();
	struct kbi_wnode *n;
	int rc = 0;

	if (kbi_unlikely(!self || a_load_rlx(&self->np) > 0))
		return post_in_handler(s);
	kbi_np_enter(self);
	n = take_waiter(s);
	if (kbi_likely(n && !a_load_rlx(sem_late_tokens(s))))
		kbi_waitq_grant_from(self, n, KBI_WNODE_GRANTED);
	else
		rc = post_more(s, n);
	kbi_np_leave(self);
	return rc;
}

int kbi_sem_post(kb_sem_t *s)
{
	int rc = put_token(s);

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
	*sem_queue(s) = (struct kbi_waitq){ NULL, NULL };
	if (a_load_rlx(sem_value(s)) & SOME)
		a_store_rlx(sem_value(s), a_load_rlx(sem_late_tokens(s)));
	a_store_rlx(sem_late_tokens(s), 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

int kb_sem_init(kb_sem_t *s, uint32_t value)
{
	if (value > KB_SEM_VALUE_MAX)
		return EINVAL;
	*s = (kb_sem_t)KB_SEM_INIT(value);
	return 0;
}

/* Returns EBUSY if threads wait. */
int kb_sem_destroy(kb_sem_t *s)
{
	return a_load_rlx(sem_value(s)) & SOME ? EBUSY : 0;
}
