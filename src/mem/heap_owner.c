/* mem/heap_owner.c - the slow paths of an owner: empty and full bins, blocks of other owners.
 * Contract in heap_owner.h.
 *
 * Callers: heap, heap_hard. Runs on the owner's kernel thread, and for orphans under life's lock.
 * Calls heap_slab, heap_owner_life. Locks: the magazines'. Never switches. */
#include "mem/heap_owner_priv.h"
#include "mem/heap_guard.h"
#include "os/lock.h"


enum { SPARE = 16, BUNDLE = 8 };

__thread struct kbi_owner *kbi_owner_self = &kbi_owner_none;
void *kbi_owner_nothing[1];
struct kbi_owner kbi_owner_none = {
	.bin = { [0 ... KBI_HEAP_CLASSES - 1] = { .take = kbi_owner_nothing } },
	.key = ~0u,
};
uint16_t kbi_owner_bin_for[KBI_HEAP_LOOKED_UP / KBI_HEAP_GRAIN + 1];

void kbi_owner_setup(void)
{
	kbi_slab_setup();
	for (unsigned i = 1; i < kbi_countof(kbi_owner_bin_for); i++)
		__atomic_store_n(&kbi_owner_bin_for[i], kbi_class_of(i * KBI_HEAP_GRAIN) << KBI_BIN_SHIFT,
				 __ATOMIC_RELAXED);
}

/* ---- magazines: empty ones circulate --------------------------------------------------------- */

static struct {
	a32 lock;
	struct kbi_magazine *empty; /* under the lock; in bundles of BUNDLE, linked by block[0] */
} pool;

static struct kbi_magazine *new_bundle(void)
{
	struct kbi_magazine *m = kbi_space_record(BUNDLE * sizeof *m);

	for (unsigned i = 0; m && i + 1 < BUNDLE; i++)
		m[i].next = &m[i + 1];
	return m;
}

static struct kbi_magazine *get_bundle(void)
{
	struct kbi_magazine *m;

	kbi_lock_take(&pool.lock);
	m = pool.empty;
	if (m)
		pool.empty = m->block[0];
	kbi_lock_leave(&pool.lock);
	return m ? m : new_bundle();
}

/* Moves the first BUNDLE of o's empty magazines to the pool. */
static void put_bundle(struct kbi_owner *o)
{
	struct kbi_magazine *first = o->spare, *last = first;

	for (unsigned i = 1; i < BUNDLE; i++)
		last = last->next;
	o->spare = last->next;
	o->n_spare -= BUNDLE;
	last->next = NULL;
	kbi_lock_take(&pool.lock);
	first->block[0] = pool.empty;
	pool.empty = first;
	kbi_lock_leave(&pool.lock);
}

static struct kbi_magazine *get_magazine(struct kbi_owner *o)
{
	struct kbi_magazine *m = o->spare;

	if (!m) {
		m = get_bundle();
		if (!m)
			return NULL;
		o->n_spare = BUNDLE;
	}
	o->spare = m->next;
	o->n_spare--;
	return m;
}

static void put_magazine(struct kbi_owner *o, struct kbi_magazine *m)
{
	m->next = o->spare;
	o->spare = m;
	if (++o->n_spare > SPARE)
		put_bundle(o);
}

/* Returns the entry below the first block. */
static void **bottom_of_magazine(struct kbi_magazine *m)
{
	return m->block - 1;
}

static unsigned magazine_count(void **top)
{
	return (unsigned)(top - bottom_of_magazine(kbi_owner_around(top)));
}

static unsigned room_of_class(unsigned k)
{
	return kbi_slab_class[k].room;
}

/* Returns the magazine that allocation from b pops from, or NULL. */
static struct kbi_magazine *taken_from(const struct kbi_bin *b)
{
	return b->take == kbi_owner_nothing ? NULL : kbi_owner_around(b->take);
}

static void load_take(struct kbi_bin *b, struct kbi_magazine *m, unsigned count)
{
	m->tag = m->count = 0; /* the bottom entry is NULL */
	b->take = bottom_of_magazine(m) + count;
}

static void load_give(struct kbi_bin *b, unsigned k, struct kbi_magazine *m, unsigned count)
{
	m->tag = m->count = 0; /* so the bottom is NULL when the magazine becomes the take magazine */
	b->give = bottom_of_magazine(m) + count;
	b->give_high = bottom_of_magazine(m) + room_of_class(k);
}

/* ---- between magazines and slabs ------------------------------------------------------------- */

static void list_slab(struct kbi_owner *o, struct kbi_slab *s)
{
	struct kbi_slab **first = &o->slabs[s->class];

	s->listed = true;
	s->prev = NULL;
	s->next = *first;
	if (s->next)
		s->next->prev = s;
	*first = s;
}

static void unlist_slab(struct kbi_owner *o, struct kbi_slab *s)
{
	s->listed = false;
	if (s->prev)
		s->prev->next = s->next;
	else
		o->slabs[s->class] = s->next;
	if (s->next)
		s->next->prev = s->prev;
}

/* Returns a block to its slab. A slab without a block in use is given back, unless it is its
 * class's only slab with free blocks and o is no orphan. */
static void return_block(struct kbi_owner *o, void *block)
{
	struct kbi_slab *s = kbi_space_slab(block);

	kbi_slab_put(s, block);
	if (!s->listed)
		list_slab(o, s);
	if (kbi_slab_is_unused(s) &&
	    (s->next || s->prev || a_load_rlx(&o->state) == KBI_OWNER_ORPHAN)) {
		unlist_slab(o, s);
		kbi_slab_end(s);
		o->count.slabs_ended++;
	}
}

static void return_blocks(struct kbi_owner *o, void **blocks, unsigned n)
{
	o->count.flushes++;
	for (unsigned i = 0; i < n; i++)
		return_block(o, blocks[i]);
}

static struct kbi_slab *slab_with_room(struct kbi_owner *o, unsigned k)
{
	struct kbi_slab *s = o->slabs[k];

	if (s)
		return s;
	s = kbi_slab_make(k, o->key | k << KBI_BIN_SHIFT);
	if (s) {
		list_slab(o, s);
		o->count.slabs_made++;
	}
	return s;
}

/* Fills an empty magazine from one slab. Returns the number of blocks. */
static unsigned fill_magazine(struct kbi_owner *o, unsigned k, struct kbi_magazine *m)
{
	struct kbi_slab *s = slab_with_room(o, k);
	unsigned n;

	if (!s)
		return 0;
	n = kbi_slab_take(s, m->block, kbi_slab_class[k].fill);
	if (!kbi_slab_has_free(s))
		unlist_slab(o, s);
	return n;
}

static void push_more(struct kbi_owner *o, unsigned k, struct kbi_magazine *m)
{
	m->next = o->bin[k].more;
	o->bin[k].more = m;
	o->n_more[k]++;
}

static struct kbi_magazine *pop_more(struct kbi_owner *o, unsigned k)
{
	struct kbi_magazine *m = o->bin[k].more;

	if (m) {
		o->bin[k].more = m->next;
		o->n_more[k]--;
	}
	return m;
}

/* ---- the inbox ------------------------------------------------------------------------------- */

/* Takes a posted magazine: puts it behind the bin, or, if there are enough, returns its blocks to
 * the slabs. */
static void accept_magazine(struct kbi_owner *o, struct kbi_magazine *m, bool keep)
{
	unsigned k = (m->tag & KBI_TAG_LARGE) >> KBI_BIN_SHIFT;

	o->count.received += m->count;
	if (keep && o->n_more[k] < kbi_slab_class[k].more) {
		push_more(o, k, m);
		return;
	}
	return_blocks(o, m->block, m->count);
	put_magazine(o, m);
}

static void receive_magazines(struct kbi_owner *o, bool keep)
{
	struct kbi_magazine *m, *next;

	if (!a_load_rlx(&o->inbox))
		return;
	/* acquire: pairs with the release in post_magazine; the magazine's blocks, and the last
	 * writes of their users */
	for (m = a_xchg_acq(&o->inbox, NULL); m; m = next) {
		next = m->next;
		accept_magazine(o, m, keep);
	}
}

void kbi_owner_receive(struct kbi_owner *o)
{
	kbi_owner_enter(o);
	receive_magazines(o, false);
	kbi_owner_leave(o);
}

/* ---- allocation ------------------------------------------------------------------------------ */

/* Takes the give magazine as the take magazine if there was none. Returns false if nothing was
 * given back. */
static bool take_given(struct kbi_bin *b)
{
	if (b->take != kbi_owner_nothing || !b->give || !magazine_count(b->give))
		return false;
	b->take = b->give;
	b->give = b->give_high = NULL;
	return true;
}

/* Refills the bin from posted magazines, or from a slab. */
static bool refill_bin(struct kbi_owner *o, unsigned k)
{
	struct kbi_bin *b = &o->bin[k];
	struct kbi_magazine *m, *empty = taken_from(b);
	unsigned n;

	o->count.refills++;
	if (!b->more)
		receive_magazines(o, true);
	m = pop_more(o, k);
	if (m) {
		if (empty)
			put_magazine(o, empty);
		load_take(b, m, m->count);
		return true;
	}
	m = empty ? empty : get_magazine(o);
	n = m ? fill_magazine(o, k, m) : 0;
	if (m)
		load_take(b, m, n);
	return n != 0;
}

/* ---- chosen blocks (heap_guard) -------------------------------------------------------------- */

void kbi_owner_untrap(struct kbi_owner *o, struct kbi_bin *b)
{
	struct kbi_trap *t = &o->trap[b - o->bin];

	if (!t->at)
		return;
	kbi_owner_enter(o);
	*t->at = t->block;
	t->at = NULL;
	kbi_owner_leave(o);
}

static void set_trap(struct kbi_owner *o, struct kbi_trap *t, void **at)
{
	kbi_owner_enter(o);
	t->block = *at;
	*at = NULL;
	t->at = at;
	t->until = 0;
	kbi_owner_leave(o);
}

/* Sets a trap at the t->until-th block from now if the magazine has that many; else counts its
 * blocks. */
static void advance_trap(struct kbi_owner *o, struct kbi_bin *b)
{
	struct kbi_trap *t = &o->trap[b - o->bin];
	unsigned n = magazine_count(b->take);

	if (t->until > n)
		t->until -= n;
	else
		set_trap(o, t, b->take - (t->until - 1));
}

static bool draw_trap_distance(struct kbi_trap *t)
{
	if (!t->until)
		t->until = kbi_guard_distance();
	return !kbi_owner_hardened;
}

void kbi_owner_set_next_trap(struct kbi_owner *o, struct kbi_bin *b)
{
	if (draw_trap_distance(&o->trap[b - o->bin]))
		advance_trap(o, b);
}

void kbi_owner_set_trap(struct kbi_owner *o, struct kbi_bin *b)
{
	struct kbi_trap *t = &o->trap[b - o->bin];

	if (!draw_trap_distance(t))
		return;
	if (t->until > 1) /* the block that was taken */
		t->until--;
	advance_trap(o, b);
}

bool kbi_owner_chooses(struct kbi_owner *o)
{
	if (!o->until)
		o->until = kbi_guard_distance();
	return --o->until == 0;
}

/* ---- allocation, the rest -------------------------------------------------------------------- */

void *kbi_owner_take(struct kbi_owner *o, unsigned k)
{
	struct kbi_bin *b = &o->bin[k];
	bool ok = true;
	void *p;

	if (kbi_owner_is_trapped(o, b))
		kbi_owner_untrap(o, b);
	if (*b->take)
		return *b->take--;
	if (!kbi_owner_exchange(o, b)) {
		kbi_owner_enter(o);
		ok = take_given(b) || refill_bin(o, k);
		kbi_owner_leave(o);
	}
	p = ok ? *b->take-- : NULL;
	if (kbi_unlikely(kbi_guard.every) && ok)
		kbi_owner_set_trap(o, b);
	return p;
}

/* ---- own frees ------------------------------------------------------------------------------- */

/* Puts the full give magazine behind the bin and returns an empty magazine. If there are many
 * behind the bin, one of them returns its blocks to the slabs. NULL: no memory. */
static struct kbi_magazine *exchange_full_magazine(struct kbi_owner *o, unsigned k)
{
	struct kbi_magazine *full = kbi_owner_around(o->bin[k].give), *m;

	if (o->n_more[k] < kbi_slab_class[k].more) {
		m = get_magazine(o);
	} else {
		m = pop_more(o, k);
		return_blocks(o, m->block, m->count);
	}
	if (m) {
		full->count = room_of_class(k);
		push_more(o, k, full);
	}
	return m;
}

static void overflow_bin(struct kbi_owner *o, unsigned k, void *block)
{
	struct kbi_bin *b = &o->bin[k];
	struct kbi_magazine *m = b->give ? exchange_full_magazine(o, k) : get_magazine(o);

	if (m) {
		load_give(b, k, m, 1);
		m->block[0] = block;
	} else {
		return_block(o, block);
	}
}

void kbi_owner_give(struct kbi_owner *o, unsigned k, void *block)
{
	struct kbi_bin *b = &o->bin[k];

	if (b->give != b->give_high) {
		*++b->give = block;
		return;
	}
	kbi_owner_enter(o);
	overflow_bin(o, k, block);
	kbi_owner_leave(o);
}

/* ---- others' blocks -------------------------------------------------------------------------- */

static unsigned class_of_tag(uint32_t tag)
{
	return (tag & KBI_TAG_LARGE) >> KBI_BIN_SHIFT;
}

static void post_magazine(struct kbi_owner *o, struct kbi_magazine *m)
{
	struct kbi_owner *to = kbi_life_owner(m->tag >> KBI_TAG_SHIFT);
	void *old = a_load_rlx(&to->inbox);

	o->count.posts++;
	o->count.posted += m->count;
	do
		m->next = old;
	/* release: pairs with the acquire in receive_magazines */
	while (!a_cas_rel(&to->inbox, &old, m));
	/* An owner that becomes an orphan meanwhile may miss the magazine: the next post to it, or the
	 * thread that takes it over, finds it. */
	if (kbi_unlikely(a_load_rlx(&to->state) == KBI_OWNER_ORPHAN))
		kbi_life_tend(to);
}

static void close_outlet(struct kbi_owner *o, struct kbi_outlet *e)
{
	struct kbi_magazine *m;

	if (!e->tag)
		return;
	m = kbi_owner_around(e->top);
	m->tag = e->tag;
	m->count = magazine_count(e->top);
	e->tag = 0;
	e->top = e->high = NULL;
	post_magazine(o, m);
}

static struct kbi_outlet *outlet_of(struct kbi_owner *o, uint32_t tag)
{
	return &o->outlet[(tag >> KBI_BIN_SHIFT) * 2654435769u >> 26];
}
_Static_assert(KBI_OUTLETS == 1 << (32 - 26), "the shift in outlet_of");

static bool open_outlet(struct kbi_owner *o, struct kbi_outlet *e, uint32_t tag)
{
	struct kbi_magazine *m;

	close_outlet(o, e);
	m = get_magazine(o);
	if (!m)
		return false;
	e->tag = tag;
	e->top = bottom_of_magazine(m);
	e->high = e->top + room_of_class(class_of_tag(tag));
	return true;
}

void kbi_owner_send(struct kbi_owner *o, uint32_t tag, void *block)
{
	struct kbi_outlet *e = outlet_of(o, tag);
	bool ok = true;

	if (kbi_unlikely(e->tag != tag || e->top == e->high)) {
		kbi_owner_enter(o);
		ok = open_outlet(o, e, tag);
		kbi_owner_leave(o);
	}
	/* without memory even for a magazine the block is lost */
	if (kbi_likely(ok))
		*++e->top = block;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void flush_magazine(struct kbi_owner *o, struct kbi_magazine *m, unsigned count)
{
	return_blocks(o, m->block, count);
	put_magazine(o, m);
}

static void flush_bin(struct kbi_owner *o, unsigned k)
{
	struct kbi_bin *b = &o->bin[k];
	struct kbi_magazine *m;

	kbi_owner_untrap(o, b);
	while ((m = pop_more(o, k)))
		flush_magazine(o, m, m->count);
	if (taken_from(b))
		flush_magazine(o, taken_from(b), magazine_count(b->take));
	if (b->give)
		flush_magazine(o, kbi_owner_around(b->give), magazine_count(b->give));
	*b = (struct kbi_bin){ .take = kbi_owner_nothing };
}

/* Gives back the last slab of a class, which is otherwise kept for later. */
static void end_unused_slab(struct kbi_owner *o, unsigned k)
{
	struct kbi_slab *s = o->slabs[k];

	if (!s || !kbi_slab_is_unused(s))
		return;
	unlist_slab(o, s);
	kbi_slab_end(s);
	o->count.slabs_ended++;
}

void kbi_owner_flush(struct kbi_owner *o)
{
	kbi_owner_enter(o);
	for (unsigned i = 0; i < KBI_OUTLETS; i++)
		close_outlet(o, &o->outlet[i]);
	receive_magazines(o, false);
	for (unsigned k = 1; k < KBI_HEAP_CLASSES; k++) {
		flush_bin(o, k);
		end_unused_slab(o, k);
	}
	while (o->n_spare >= BUNDLE)
		put_bundle(o);
	kbi_owner_leave(o);
}

void kbi_owner_freeze(void)
{
	kbi_lock_take(&pool.lock);
}

void kbi_owner_thaw(void)
{
	kbi_lock_leave(&pool.lock);
}
