/* mem/heap_owner_life.c - which owners there are: made when a kernel thread first allocates, orphans when it ends, taken
 * over by the next. A thread's end is told by a destructor of thread-specific data; one that allocates even after that is
 * found by asking the kernel whether it lives. In a child of fork those of other kernel threads are lost.
 * Contract in heap_owner.h. Locks: life's, in front of the space's. Never switches. */
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
	uint32_t asked; /* the last one that was asked whether it lives */
	/* any thread */
	aptr *owner;  /* by number, from 1; constant once made */
	a32 limit;    /* numbers below are in use */
	a32 watching; /* key counts */
	pthread_key_t key;
} life;

struct kbi_owner *kbi_life_owner(uint32_t number)
{
	/* acquire: partner is the release in publish */
	return a_load_acq(&life.owner[number]);
}

uint32_t kbi_life_limit(void)
{
	/* acquire: partner is the release in publish */
	return a_load_acq(&life.limit);
}

bool kbi_owner_hardened;

/* ---- making, under the lock ------------------------------------------------------------------ */

static void publish(struct kbi_owner *o, uint32_t number)
{
	o->key = number << KBI_TAG_SHIFT;
	o->behind = o;
	/* release: partner is the acquire in kbi_life_owner, _limit */
	a_store_rel(&life.owner[number], o);
	a_store_rel(&life.limit, number + 1);
}

static struct kbi_owner *new_owner(void)
{
	struct kbi_owner *o = kbi_space_record(sizeof *o);

	for (unsigned k = 0; o && k < KBI_HEAP_CLASSES; k++)
		o->bin[k].take = kbi_owner_nothing;
	return o;
}

static struct kbi_owner *make(void)
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
	o = new_owner();
	if (o)
		publish(o, number);
	return o;
}

/* This kernel thread has one, but the TLS that is loaded does not know it. One that is busy is another's, of the same
 * number, which has ended in the middle of something: the caller comes from outside the heap. */
static struct kbi_owner *find_mine(uint32_t tid)
{
	for (uint32_t i = 1, n = a_load_rlx(&life.limit); i < n; i++) {
		struct kbi_owner *o = a_load_rlx(&life.owner[i]);

		if (a_load_rlx(&o->tid) == tid && a_load_rlx(&o->state) == KBI_OWNER_OWNED && !a_load_rlx(&o->busy))
			return o;
	}
	return NULL;
}

/* Signal 0 tells whether a kernel thread is there. One that was in the middle of something has left nothing whole. A
 * process that was killed is there until its successor's number stands here: who finds that it is not looks again. */
static bool is_gone(const struct kbi_owner *o)
{
	uint32_t tid = a_load_rlx(&o->tid);

	return a_load_rlx(&o->state) == KBI_OWNER_OWNED && !a_load_rlx(&o->busy) &&
	       kbi_sys_signal((int)tid, 0) == -ESRCH && a_load_rlx(&o->tid) == tid;
}

/* One whose thread ended without a word; some are asked each time. */
static struct kbi_owner *find_gone(void)
{
	uint32_t n = a_load_rlx(&life.limit);

	for (unsigned i = 0; i < ASKED && i + 1 < n; i++) {
		struct kbi_owner *o;

		life.asked = life.asked + 1 < n ? life.asked + 1 : 1;
		o = a_load_rlx(&life.owner[life.asked]);
		if (is_gone(o))
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

/* In hardened mode: an owner without blocks in front of o, so that everything is asked of heap_hard. */
static struct kbi_owner *front(struct kbi_owner *o)
{
	struct kbi_owner *f = o;

	if (kbi_owner_hardened) {
		f = o->front ? o->front : new_owner();
		o->front = f;
		if (!f)
			return &kbi_owner_none;
		f->key = ~0u;
		f->behind = o;
	}
	return f;
}

/* Its end will be told. Perhaps: the destructors of the thread may run already. */
static void arrange_end(struct kbi_owner *o)
{
	/* acquire: partner is the release in kbi_life_watch */
	if (a_load_acq(&life.watching))
		pthread_setspecific(life.key, o);
}

/* A process that is killed here has another number then: that of one that has ended may be anybody's. */
static struct kbi_owner *find_old(void)
{
	struct kbi_owner *o;
	int tid;

	do {
		tid = kbi_sys_gettid();
		o = find_mine((uint32_t)tid);
	} while (tid != kbi_sys_gettid());
	return o;
}

/* Likewise. Who renumbers finds it from the store on; before that, the second look does. */
static void sign(struct kbi_owner *o)
{
	do
		a_store_rlx(&o->tid, (uint32_t)kbi_sys_gettid());
	while (a_load_rlx(&o->tid) != (uint32_t)kbi_sys_gettid());
	a_store_rlx(&o->state, KBI_OWNER_OWNED);
}

/* The first that fits: its own, one that is nobody's, a new one. Under the lock. */
static struct kbi_owner *find_owner(void)
{
	struct kbi_owner *o = find_old();

	if (!o)
		o = take_orphan();
	if (!o)
		o = find_gone();
	if (!o)
		o = make();
	if (o)
		sign(o);
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
	/* the slot first: arranging may allocate */
	kbi_owner_self = front(o);
	arrange_end(o);
	return o;
}

static void leave_to_heirs(struct kbi_owner *o)
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
	leave_to_heirs(o);
}

/* Destructors of other keys may allocate after this one: then the thread has an owner again, and another round of
 * destructors, or is found to have gone. */
static void at_thread_end(void *o)
{
	if (kbi_owner_self->behind == o)
		kbi_life_end();
}

/* The store comes before `was` is let go (core/revive), so before it ends, and before anybody is told that it has: partner
 * is the second look in is_gone, through the kernel. */
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

/* The kernel copies page after page while other kernel threads go on, and not in the order of their stores. So the child
 * uses only what nobody changes meanwhile: what a lock protects that is held, orphans, and the caller's own. What others
 * send during that time may be half there: so inboxes are emptied before, and the child throws away what they have. */
static void before_fork(void)
{
	if (kbi_owner_self->behind)
		kbi_owner_receive(kbi_owner_self->behind);
	kbi_life_tend_all();
	kbi_life_hold(true);
}

static void in_parent(void)
{
	kbi_life_hold(false);
}

/* The other kernel threads are not there. Their owners stay as they are, for ever. */
static void in_child(void)
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
	in_parent();
}

void kbi_life_watch(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
	/* release: partner is the acquire in arrange_end */
	if (pthread_key_create(&life.key, at_thread_end) == 0)
		a_store_rel(&life.watching, 1);
}
