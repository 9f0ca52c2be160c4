/* mem/heap_owner_life.c - the owners' lives: an owner is made when a kernel thread first allocates,
 * becomes an orphan when the thread ends, and is taken over by the next kernel thread. A destructor
 * of thread-specific data reports a thread's end; for a thread that allocates even after that, the
 * kernel is asked whether it still exists. In a child of fork the owners of all other kernel
 * threads are lost. Contract in heap_owner.h.
 *
 * Locks: life's, before the space's. Never switches. */
#include "mem/heap_owner_priv.h"
#include "os/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>


enum { OWNERS = 1 << 20, ASKED = 8 };
_Static_assert((uint64_t)OWNERS << KBI_TAG_SHIFT <= (uint64_t)1 << 32, "a number fits in a tag");

static struct {
	a32 lock;
	/* under the lock */
	struct kbi_owner *orphans;
	uint32_t asked; /* number of the last owner whose thread's existence was checked */
	/* any thread */
	aptr *owner;  /* by number, from 1; constant once made */
	a32 limit;    /* numbers below this are in use */
	a32 watching; /* the key is valid */
	pthread_key_t key;
} life;

struct kbi_owner *kbi_life_owner(uint32_t number)
{
	/* acquire: pairs with the release in publish_owner */
	return a_load_acq(&life.owner[number]);
}

uint32_t kbi_life_limit(void)
{
	/* acquire: pairs with the release in publish_owner */
	return a_load_acq(&life.limit);
}

bool kbi_owner_hardened;

/* ---- making, under the lock ------------------------------------------------------------------ */

static void publish_owner(struct kbi_owner *o, uint32_t number)
{
	o->key = number << KBI_TAG_SHIFT;
	o->behind = o;
	/* release: pairs with the acquires in kbi_life_owner and kbi_life_limit */
	a_store_rel(&life.owner[number], o);
	a_store_rel(&life.limit, number + 1);
}

static struct kbi_owner *allocate_owner(void)
{
	struct kbi_owner *o = kbi_space_record(sizeof *o);

	for (unsigned k = 0; o && k < KBI_HEAP_CLASSES; k++)
		o->bin[k].take = kbi_owner_nothing;
	return o;
}

static struct kbi_owner *make_owner(void)
{
	uint32_t number = a_load_rlx(&life.limit);
	struct kbi_owner *o;

	if (!life.owner) {
		life.owner = kbi_sys_map(OWNERS * sizeof *life.owner);
		kbi_owner_setup();
		number = 1;
	}
	if (!life.owner || number >= OWNERS || !kbi_space_setup())
		return NULL;
	o = allocate_owner();
	if (o)
		publish_owner(o, number);
	return o;
}

/* Finds the owner of a kernel thread whose loaded TLS does not name it. A busy owner is not the
 * caller's, which comes from outside the heap: it belonged to an earlier kernel thread with an
 * equal number, which ended inside an operation. */
static struct kbi_owner *find_owner_of_tid(uint32_t tid)
{
	for (uint32_t i = 1, n = a_load_rlx(&life.limit); i < n; i++) {
		struct kbi_owner *o = a_load_rlx(&life.owner[i]);

		if (a_load_rlx(&o->tid) == tid && a_load_rlx(&o->state) == KBI_OWNER_OWNED &&
		    !a_load_rlx(&o->busy))
			return o;
	}
	return NULL;
}

/* Returns whether o's kernel thread is gone; signal 0 tests this. A busy owner does not count: its
 * records are incomplete. A killed process exists until its successor's number is in o->tid, so tid
 * is read again after the test. */
static bool is_owner_gone(const struct kbi_owner *o)
{
	uint32_t tid = a_load_rlx(&o->tid);

	return a_load_rlx(&o->state) == KBI_OWNER_OWNED && !a_load_rlx(&o->busy) &&
	       kbi_sys_signal((int)tid, 0) == -ESRCH && a_load_rlx(&o->tid) == tid;
}

/* Returns an owner whose thread ended without reporting it; each call checks a few. */
static struct kbi_owner *find_gone_owner(void)
{
	uint32_t n = a_load_rlx(&life.limit);

	for (unsigned i = 0; i < ASKED && i + 1 < n; i++) {
		struct kbi_owner *o;

		life.asked = life.asked + 1 < n ? life.asked + 1 : 1;
		o = a_load_rlx(&life.owner[life.asked]);
		if (is_owner_gone(o))
			return o;
	}
	return NULL;
}

static struct kbi_owner *take_orphan(void)
{
	struct kbi_owner *o = life.orphans;

	if (o)
		life.orphans = o->next_orphan;
	return o;
}

/* ---- a kernel thread's life ------------------------------------------------------------------ */

/* In hardened mode, returns an owner without blocks that stands in front of o, so that every call
 * goes to heap_hard; else o. */
static struct kbi_owner *front_of_owner(struct kbi_owner *o)
{
	struct kbi_owner *f = o;

	if (kbi_owner_hardened) {
		f = o->front ? o->front : allocate_owner();
		o->front = f;
		if (!f)
			return &kbi_owner_none;
		f->key = ~0u;
		f->behind = o;
	}
	return f;
}

/* Arranges that the thread's end is reported. This may fail: the thread's destructors may be
 * running already. */
static void arrange_end(struct kbi_owner *o)
{
	/* acquire: pairs with the release in kbi_life_watch; the key */
	if (a_load_acq(&life.watching))
		pthread_setspecific(life.key, o);
}

/* Finds the owner of the calling kernel thread. If its process is killed in here, its successor has
 * another number; the number of an ended process may belong to any new process. So the number is
 * read again. */
static struct kbi_owner *find_caller_owner(void)
{
	struct kbi_owner *o;
	int tid;

	do {
		tid = kbi_sys_gettid();
		o = find_owner_of_tid((uint32_t)tid);
	} while (tid != kbi_sys_gettid());
	return o;
}

/* Makes o the calling kernel thread's. If the process is killed in here, kbi_life_renumber changes
 * tid once it is stored; before that, the second reading of the number notices. */
static void claim_owner(struct kbi_owner *o)
{
	do
		a_store_rlx(&o->tid, (uint32_t)kbi_sys_gettid());
	while (a_load_rlx(&o->tid) != (uint32_t)kbi_sys_gettid());
	a_store_rlx(&o->state, KBI_OWNER_OWNED);
}

/* Returns the first owner that fits: the thread's own, an orphan, the owner of a thread that is
 * gone, a new one. Under the lock. */
static struct kbi_owner *find_owner(void)
{
	struct kbi_owner *o = find_caller_owner();

	if (!o)
		o = take_orphan();
	if (!o)
		o = find_gone_owner();
	if (!o)
		o = make_owner();
	if (o)
		claim_owner(o);
	return o;
}

struct kbi_owner *kbi_life_begin(void)
{
	struct kbi_owner *o;

	kbi_lock_take(&life.lock);
	o = find_owner();
	kbi_lock_leave(&life.lock);
	if (!o)
		return NULL;
	/* first the slot, because arrange_end may allocate */
	kbi_owner_self = front_of_owner(o);
	arrange_end(o);
	return o;
}

static void make_orphan(struct kbi_owner *o)
{
	kbi_lock_take(&life.lock);
	a_store_rlx(&o->state, KBI_OWNER_ORPHAN);
	o->next_orphan = life.orphans;
	life.orphans = o;
	kbi_owner_receive(o);
	kbi_lock_leave(&life.lock);
}

void kbi_life_end(void)
{
	struct kbi_owner *o = kbi_owner_self->behind;

	if (!o)
		return;
	kbi_owner_flush(o);
	kbi_owner_self = &kbi_owner_none;
	make_orphan(o);
}

/* Destructors of other keys may allocate after this one. Then the thread has an owner again, and
 * either another round of destructors follows, or find_gone_owner finds the owner. */
static void on_owner_thread_end(void *o)
{
	if (kbi_owner_self->behind == o)
		kbi_life_end();
}

/* The store to tid comes before the process `was` is released (core/respawn), so before it ends,
 * and before the kernel reports to any process that it has ended: pairs with the second reading of
 * tid in is_owner_gone, through the kernel. */
void kbi_life_renumber(uint32_t was, uint32_t now)
{
	for (uint32_t i = 1, n = kbi_life_limit(); i < n; i++) {
		struct kbi_owner *o = kbi_life_owner(i);

		if (o && a_load_rlx(&o->tid) == was)
			a_store_rlx(&o->tid, now);
	}
}

void kbi_life_stays(void)
{
	/* acquire: pairs with the release in kbi_life_watch; the key */
	if (a_load_acq(&life.watching))
		pthread_setspecific(life.key, NULL);
}

/* ---- orphans --------------------------------------------------------------------------------- */

void kbi_life_tend(struct kbi_owner *o)
{
	kbi_lock_take(&life.lock);
	if (a_load_rlx(&o->state) == KBI_OWNER_ORPHAN)
		kbi_owner_receive(o);
	kbi_lock_leave(&life.lock);
}

void kbi_life_tend_all(void)
{
	kbi_lock_take(&life.lock);
	for (struct kbi_owner *o = life.orphans; o; o = o->next_orphan)
		kbi_owner_receive(o);
	kbi_lock_leave(&life.lock);
}

void kbi_life_hold(bool is)
{
	if (is) {
		kbi_lock_take(&life.lock);
		kbi_owner_freeze();
		kbi_space_freeze();
	} else {
		kbi_space_thaw();
		kbi_owner_thaw();
		kbi_lock_leave(&life.lock);
	}
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* The kernel copies page after page while other kernel threads go on, and not in the order of their
 * stores. So the child uses only memory that no thread changes meanwhile: memory that a held lock
 * protects, orphans, and the caller's own owner. A magazine that another thread posts during the
 * fork may be copied half written: so inboxes are emptied before, and the child discards their
 * contents. */
static void freeze_heap_before_fork(void)
{
	if (kbi_owner_self->behind)
		kbi_owner_receive(kbi_owner_self->behind);
	kbi_life_tend_all();
	kbi_life_hold(true);
}

static void thaw_heap_after_fork(void)
{
	kbi_life_hold(false);
}

/* The other kernel threads do not exist in the child. Their owners stay unused for ever. */
static void mend_owners_in_child(void)
{
	struct kbi_owner *mine = kbi_owner_self->behind;

	for (uint32_t i = 1, n = a_load_rlx(&life.limit); i < n; i++) {
		struct kbi_owner *o = a_load_rlx(&life.owner[i]);

		a_store_rlx(&o->inbox, NULL);
		if (o == mine)
			a_store_rlx(&o->tid, (uint32_t)kbi_sys_gettid());
		else if (a_load_rlx(&o->state) != KBI_OWNER_ORPHAN)
			a_store_rlx(&o->state, KBI_OWNER_LOST);
	}
	thaw_heap_after_fork();
}

void kbi_life_watch(void)
{
	pthread_atfork(freeze_heap_before_fork, thaw_heap_after_fork, mend_owners_in_child);
	/* release: pairs with the acquires in arrange_end and kbi_life_stays */
	if (pthread_key_create(&life.key, on_owner_thread_end) == 0)
		a_store_rel(&life.watching, 1);
}
