/* sync/waitq.c - waiting for a verdict. Contract and laws in waitq.h.
 * Callers: this room, io, posix. Runs on the waiter's or the waker's stack; only kbi_waitq_sleep
 * and the functions kbi_waitq_await* may switch. */
#include "sync/waitq.h"

#include <errno.h>
#include <limits.h>
#include <time.h>

#include "core/contain.h"
#include "core/foreign.h"
#include "os/sys.h"

/* Tries before the kernel thread yields: the holder of the bit may have been preempted. */
enum { TRIES_PER_YIELD = 128 };

void kbi_waitq_pause(unsigned n)
{
	if (n % TRIES_PER_YIELD == TRIES_PER_YIELD - 1)
		kbi_sys_yield_to_holder(n / TRIES_PER_YIELD);
	else
		kbi_cpu_relax();
}

aptr kbi_waitq_rank;

/* Reads the waiter's priority: it may have changed since the last wait. A node that another thread
 * moves from queue to queue keeps its rank. */
static void look_up_rank(struct kbi_wnode *n)
{
	uint32_t (*rank_of_caller)(void) = (uint32_t (*)(void))(uintptr_t)a_load_rlx(&kbi_waitq_rank);

	if (n->task == kbi_self_raw())
		n->rank = rank_of_caller();
}

static void put_between(struct kbi_waitq *q, struct kbi_wnode *prev, struct kbi_wnode *n,
	struct kbi_wnode *next)
{
	n->prev = prev;
	n->next = next;
	if (prev)
		prev->next = n;
	else
		q->head = n;
	if (next)
		next->prev = n;
	else
		q->tail = n;
}

void kbi_waitq_insert(struct kbi_waitq *q, struct kbi_wnode *n, bool first)
{
	struct kbi_wnode *i;

	look_up_rank(n);
	if (first) {
		for (i = q->head; i && i->rank > n->rank;)
			i = i->next;
		put_between(q, i ? i->prev : q->tail, n, i);
	} else {
		for (i = q->tail; i && i->rank < n->rank;)
			i = i->prev;
		put_between(q, i, n, i ? i->next : q->head);
	}
}

void kbi_waitq_grant_all(struct kbi_wnode *chain, uint32_t verdict)
{
	while (chain) {
		struct kbi_wnode *next = chain->next;

		kbi_waitq_grant(chain, verdict);
		chain = next;
	}
}

/* ---- many at a time -------------------------------------------------------------------------- */

enum {
	SPREAD = 16,          /* most idle virtual processors that get waiters at a time */
	/* ns since the last time: shorter steps do not pay for a move to a VP that polls */
	WORTH = 1000,
	WORTH_WAKING = 30000, /* likewise for a VP that sleeps in the kernel */
};

struct spread {
	struct kbi_vp *vp[SPREAD];
	unsigned has[SPREAD], vps, share;
};

/* Finds idle VPs and each VP's share of n waiters. step: ns since the last time on me. */
static void find_idle_vps(struct spread *s, const struct kbi_vp *me, unsigned n, uint64_t step)
{
	s->vps = 0;
	for (unsigned i = 1; i < kbi_vp_n && s->vps < SPREAD && step >= WORTH; i++) {
		struct kbi_vp *vp = kbi_vps[(me->id + i) % kbi_vp_n];
		uint32_t idle = a_load_rlx(&vp->s->idle);

		if (idle == KBI_IDLE_BUSY || (a_load_rlx(&vp->doze) && step < WORTH_WAKING))
			continue;
		s->has[s->vps] = 0;
		s->vp[s->vps++] = vp;
	}
	s->share = (n + 1) / (s->vps + 1);
}

/* Returns the idle VP where t waits, else the idle VP that has got the fewest waiters;
 * NULL: each has its share. */
static struct kbi_vp *choose_idle_vp(struct spread *s, const struct kbi_task *t)
{
	uint64_t st = a_load_rlx(&t->state);
	unsigned least = 0;

	for (unsigned i = 0; i < s->vps; i++) {
		if (st == s->vp[i]->waiting_here) {
			s->has[i]++;
			return s->vp[i];
		}
		if (s->has[i] < s->has[least])
			least = i;
	}
	if (s->has[least] >= s->share)
		return NULL;
	s->has[least]++;
	return s->vp[least];
}

void kbi_waitq_grant_apart(struct kbi_wnode *chain, unsigned n, uint32_t verdict)
{
	struct kbi_task *self = kbi_waitq_self();
	struct kbi_vp *me = self->vp;
	struct spread s;
	uint64_t now;

	if (!me || a_zero32_rlx(&kbi_vps[0]->s->idle_count)) {
		kbi_waitq_grant_all(chain, verdict);
		return;
	}
	now = kbi_sys_now();
	find_idle_vps(&s, me, n, now - me->spread_at);
	me->spread_at = now;
	while (chain) {
		struct kbi_wnode *next = chain->next;
		struct kbi_task *t = chain->task;
		struct kbi_vp *vp = s.vps ? choose_idle_vp(&s, t) : NULL;

		/* release: pairs with the acquire in kbi_waitq_await, as in kbi_waitq_grant */
		a_store_rel(&chain->state, verdict);
		if (vp)
			kbi_domain_wake_apart(me, t, vp);
		else
			kbi_domain_wake(me, t, false);
		chain = next;
	}
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* Sleeps until a time of CLOCK_REALTIME, at most a second; then the caller looks again. ETIMEDOUT:
 * the time has passed. */
static int sleep_real(struct kbi_task *self, uint64_t ns)
{
	enum { SECOND = 1000000000 };
	int64_t sec = (int64_t)(ns / SECOND);
	long nsec = (long)(ns % SECOND);
	int rc = kbi_timer_sleep(self, kbi_timer_deadline(CLOCK_REALTIME, sec, nsec));

	return rc == ETIMEDOUT && !kbi_timer_passed(CLOCK_REALTIME, sec, nsec) ? 0 : rc;
}

int kbi_waitq_sleep(struct kbi_task *self, struct kbi_until until)
{
	int rc = until.stop ? until.stop(self) : 0;

	if (rc)
		return rc;
	if (until.deadline == KBI_FOREVER) {
		kbi_wait_sleep(self);
		return 0;
	}
	if (until.deadline & KBI_WAITQ_REAL)
		return sleep_real(self, until.deadline & ~KBI_WAITQ_REAL);
	return kbi_timer_sleep(self, until.deadline);
}

/* ---- a crowd --------------------------------------------------------------------------------- */

/* The words are never unmapped: the object may be gone when its last waiters wake up. */
enum { CROWD_BITS = 6, CROWDS = 1 << CROWD_BITS };

static struct {
	a32 word;
} KBI_ALIGNED(KBI_CACHE_LINE) crowds[CROWDS];

static a32 *crowd_of(const void *object)
{
	/* a hash by the golden ratio, as in sync/park */
	return &crowds[((uintptr_t)object >> 3) * 0x9E3779B97F4A7C15u >> (64 - CROWD_BITS)].word;
}

uint32_t kbi_waitq_crowd_seen(const void *object)
{
	return a_load_rlx(crowd_of(object));
}

void kbi_waitq_grant_crowd(struct kbi_wnode *chain, uint32_t verdict, const void *object)
{
	a32 *crowd = crowd_of(object);

	if (!chain)
		return;
	while (chain) {
		struct kbi_wnode *next = chain->next;

		/* release: pairs with the acquire in kbi_waitq_await, as in kbi_waitq_grant */
		a_store_rel(&chain->state, verdict);
		chain = next;
	}
	/* release: pairs with the acquire in sleep_in_crowd, which makes the verdict visible */
	a_add_acqrel(crowd, 1);
	kbi_sys_futex_wake(crowd, INT_MAX);
}

static int sleep_in_crowd(struct kbi_task *self, struct kbi_until until, const a32 *crowd,
	uint32_t *seen)
{
	int rc = until.stop ? until.stop(self) : 0;

	if (rc == 0)
		rc = kbi_foreign_sleep_at(self, crowd, *seen, until.deadline);
	/* acquire: pairs with the release in kbi_waitq_grant_crowd */
	*seen = a_load_acq(crowd);
	return rc;
}

/* A wait. Its cleanup serves a thread that a handler run by stop has unwound: by
 * cancellation or by pthread_exit. */
struct await {
	struct kbi_wnode *n;
	bool (*leave)(void *object, struct kbi_wnode *n);
	void *object;
	const a32 *crowd; /* NULL: the waiter is not in a crowd */
	uint32_t seen;
	bool over;
};

static int await_verdict(struct await *a, struct kbi_until until)
{
	/* acquire: pairs with the release in kbi_waitq_grant */
	while (a_load_acq(&a->n->state) < KBI_WNODE_GRANTED) {
		int rc = a->crowd ? sleep_in_crowd(a->n->task, until, a->crowd, &a->seen) :
				    kbi_waitq_sleep(a->n->task, until);

		if (kbi_likely(rc == 0) || rc == EAGAIN)
			continue;
		if (a->leave(a->object, a->n)) {
			a->over = true;
			if (kbi_unlikely(kbi_contain_on) && rc == ETIMEDOUT)
				kbi_contain_waited_in_vain(a->n->task);
			return rc;
		}
		until = kbi_waitq_until(KBI_FOREVER);
	}
	a->over = true;
	return 0;
}

static void on_await_unwound(struct await *a)
{
	if (!a->over && !a->leave(a->object, a->n))
		(void)await_verdict(a, kbi_waitq_until(KBI_FOREVER));
}

int kbi_waitq_await(struct kbi_wnode *n, struct kbi_until until,
		    bool (*leave)(void *object, struct kbi_wnode *n), void *object)
{
	struct await a __attribute__((cleanup(on_await_unwound))) =
		{ .n = n, .leave = leave, .object = object };

	return await_verdict(&a, until);
}

int kbi_waitq_await_in_crowd(struct kbi_wnode *n, struct kbi_until until,
			     bool (*leave)(void *object, struct kbi_wnode *n), void *object, uint32_t seen)
{
	struct await a __attribute__((cleanup(on_await_unwound))) =
		{ n, leave, object, crowd_of(object), seen, false };

	return await_verdict(&a, until);
}

bool kbi_waitq_leave(a32 *word, struct kbi_waitq *q, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	uint32_t value;
	bool queued;

	kbi_np_enter(self);
	value = kbi_waitq_lock(word) & ~(uint32_t)KBI_WAITQ_SOME;
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued)
		kbi_waitq_remove(q, n);
	kbi_waitq_unlock(word, value | kbi_waitq_some(q));
	kbi_np_leave(self);
	return queued;
}
