/* sync/park.c - sleepers by address. Contract in park.h.
 * Callers: sync/once, sync/future, posix. Only the functions kbi_park_wait* may switch.
 *
 * A bucket is a lock word and a queue of sleepers of the addresses that hash to the bucket. A
 * sleeper's bucket changes only when a requeue moves the sleeper, under both buckets' locks; a
 * reader reads `bucket`, locks that bucket, and reads again.
 *
 * A waker that finds a bucket empty takes no lock. A waiter counts itself, then reads the address;
 * a waker changes the address, then reads the count. With a full fence between the two steps on
 * either side, one sees the other's step: the waiter sees the new value and does not sleep, or the
 * waker sees the count and takes the lock, after the waiter. */
#include "sync/park.h"

#include <errno.h>
#include <limits.h>

enum { BUCKET_BITS = 8, BUCKETS = 1 << BUCKET_BITS };

struct bucket {
	a32 word;
	a32 some;               /* number of sleepers, including a coming sleeper; written under word */
	struct kbi_waitq queue; /* under word */
} KBI_ALIGNED(KBI_CACHE_LINE);

struct sleeper {
	struct kbi_wnode n;   /* first */
	const uint32_t *addr; /* under the bucket's lock, as is `bucket` for writing */
	aptr bucket;          /* read without lock by the sleeper itself */
	uint32_t bitset;      /* constant */
};

static struct bucket buckets[BUCKETS];

static inline struct bucket *bucket_of(const uint32_t *addr)
{
	/* the golden ratio spreads addresses that have low bits in common */
	return &buckets[((uintptr_t)addr >> 2) * 0x9E3779B97F4A7C15u >> (64 - BUCKET_BITS)];
}

static inline void lock_bucket(struct bucket *b) { kbi_waitq_lock(&b->word); }
static inline void unlock_bucket(struct bucket *b) { kbi_waitq_unlock(&b->word, 0); }

static inline uint32_t read_parked_word(const uint32_t *addr)
{
	/* relaxed: a waker's change reaches us with the bucket's lock, which
	 * the waker takes afterwards */
	return __atomic_load_n(addr, __ATOMIC_RELAXED);
}

static void change_sleeper_count(struct bucket *b, uint32_t more)
{
	a_store_rlx(&b->some, a_load_rlx(&b->some) + more);
}

bool kbi_park_has(const uint32_t *addr)
{
	/* sc: the caller's change of the address before our read of the count; pairs with the fence in
	 * kbi_park_wait_until */
	a_fence_sc();
	return a_load_rlx(&bucket_of(addr)->some);
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Unlinks up to max sleepers of addr that the bitset matches. Returns their chain, and in *n their
 * number. Under the lock. */
static struct kbi_wnode *unlink_sleepers(struct bucket *b, const uint32_t *addr, unsigned max,
	uint32_t bitset, unsigned *n)
{
	struct kbi_wnode *i = b->queue.head, *first = NULL, **end = &first;

	for (*n = 0; i && *n < max;) {
		struct kbi_wnode *next = i->next;
		struct sleeper *s = (struct sleeper *)i;

		if (s->addr == addr && (s->bitset & bitset)) {
			kbi_waitq_take(&b->queue, i);
			change_sleeper_count(b, -1u);
			i->next = NULL;
			*end = i;
			end = &i->next;
			++*n;
		}
		i = next;
	}
	return first;
}

unsigned kbi_park_wake_by(struct kbi_task *self, const uint32_t *addr, unsigned n, uint32_t bitset)
{
	struct bucket *b = bucket_of(addr);
	struct kbi_wnode *chain;
	unsigned woken;

	if (self)
		kbi_np_enter(self);
	lock_bucket(b);
	chain = unlink_sleepers(b, addr, n, bitset, &woken);
	unlock_bucket(b);
	if (n >= INT_MAX)
		kbi_waitq_grant_apart(chain, woken, KBI_WNODE_GRANTED);
	else
		kbi_waitq_grant_all(chain, KBI_WNODE_GRANTED);
	if (self)
		kbi_np_leave(self);
	return woken;
}

unsigned kbi_park_wake(const uint32_t *addr, unsigned n, uint32_t bitset)
{
	return kbi_park_wake_by(kbi_waitq_self(), addr, n, bitset);
}

/* Makes up to max sleepers of addr in `from` sleepers of `to` in `into`. Returns how many. Both
 * buckets are locked. */
static unsigned move_sleepers(struct bucket *from, const uint32_t *addr, struct bucket *into,
	const uint32_t *to, unsigned max)
{
	struct kbi_wnode *i = from->queue.head;
	unsigned moved = 0;

	while (i && moved < max) {
		struct kbi_wnode *next = i->next;
		struct sleeper *s = (struct sleeper *)i;

		if (s->addr == addr) {
			kbi_waitq_remove(&from->queue, i);
			kbi_waitq_append(&into->queue, i);
			change_sleeper_count(from, -1u);
			change_sleeper_count(into, 1);
			s->addr = to;
			a_store_rlx(&s->bucket, into);
			moved++;
		}
		i = next;
	}
	return moved;
}

/* Locks two buckets, in the order of their addresses. */
static void lock_both_buckets(struct bucket *a, struct bucket *b)
{
	lock_bucket(a < b ? a : b);
	if (a != b)
		lock_bucket(a < b ? b : a);
}

static void unlock_both_buckets(struct bucket *a, struct bucket *b)
{
	unlock_bucket(a);
	if (a != b)
		unlock_bucket(b);
}

int kbi_park_requeue(const uint32_t *addr, unsigned n_wake, const uint32_t *to, unsigned n_move,
		     const uint32_t *compare, unsigned *woken, unsigned *moved)
{
	struct kbi_task *self = kbi_waitq_self();
	struct bucket *from = bucket_of(addr), *into = bucket_of(to);
	struct kbi_wnode *chain = NULL;
	unsigned w = 0, m = 0;
	int rc = 0;

	kbi_np_enter(self);
	lock_both_buckets(from, into);
	if (compare && read_parked_word(addr) != *compare) {
		rc = EAGAIN;
	} else {
		chain = unlink_sleepers(from, addr, n_wake, KBI_PARK_ANY, &w);
		m = addr == to ? 0 : move_sleepers(from, addr, into, to, n_move);
	}
	unlock_both_buckets(from, into);
	kbi_waitq_grant_all(chain, KBI_WNODE_GRANTED);
	kbi_np_leave(self);
	if (woken)
		*woken = w;
	if (moved)
		*moved = m;
	return rc;
}

void kbi_park_orphan(void)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		buckets[i] = (struct bucket){ .word = { 0 } };
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Locks the bucket in which the sleeper stands, and returns it. */
static struct bucket *lock_bucket_of_sleeper(struct sleeper *s)
{
	for (;;) {
		struct bucket *b = a_load_rlx(&s->bucket);

		lock_bucket(b);
		if (a_load_rlx(&s->bucket) == (void *)b)
			return b;
		unlock_bucket(b);
	}
}

static bool leave_bucket(void *unused, struct kbi_wnode *n)
{
	struct kbi_task *self = n->task;
	struct bucket *b;
	bool queued;

	(void)unused;
	kbi_np_enter(self);
	b = lock_bucket_of_sleeper((struct sleeper *)n);
	queued = a_load_rlx(&n->state) == KBI_WNODE_QUEUED;
	if (queued) {
		kbi_waitq_remove(&b->queue, n);
		change_sleeper_count(b, -1u);
	}
	unlock_bucket(b);
	kbi_np_leave(self);
	return queued;
}

int kbi_park_wait_until(const uint32_t *addr, uint32_t expected, uint32_t bitset,
	struct kbi_until until)
{
	struct kbi_task *self = kbi_waitq_self();
	struct bucket *b = bucket_of(addr);
	struct sleeper s = { .n.task = self, .addr = addr, .bucket = { b }, .bitset = bitset };
	bool queued;

	if (bitset == 0)
		return EINVAL;
	kbi_np_enter(self);
	lock_bucket(b);
	change_sleeper_count(b, 1);
	/* sc: our count before our read of the address; pairs with the fence in kbi_park_has */
	a_fence_sc();
	queued = read_parked_word(addr) == expected;
	if (queued)
		kbi_waitq_append(&b->queue, &s.n);
	else
		change_sleeper_count(b, -1u);
	unlock_bucket(b);
	kbi_np_leave(self);
	return queued ? kbi_waitq_await(&s.n, until, leave_bucket, NULL) : EAGAIN;
}

int kbi_park_wait(const uint32_t *addr, uint32_t expected, uint32_t bitset, uint64_t deadline)
{
	return kbi_park_wait_until(addr, expected, bitset, kbi_waitq_until(deadline));
}
