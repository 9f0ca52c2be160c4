/* mem/stack.c - the stack pools. Contract in stack.h.
 * A class is a (size, with control block) pair; each slot keeps a list per class and gives half of a long list
 * to the class's common list, from which a slot with none takes a batch. */
#include "mem/stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/option.h"
#include "base/san.h"
#include "mem/heap_door.h"
#include "mem/stack_code.h"
#include "mem/stack_guard.h"
#include "os/everywhere.h"
#include "os/lock.h"
#include "os/sys.h"

enum {
	CLASSES = KBI_STACK_CLASSES,
	BATCH = 64,           /* stacks moved between a slot and the common list */
	CACHE = KBI_STACK_CACHE,
	CHUNK_BYTES = 4 << 20, /* mapped at once, if more than one stack fits */
	CHUNKS = 1 << 20,
	LEAST_OF_PROCESSES = 16,
	COLOURS = 12, COLOUR_STEP = 192,
	TICK_ROOM = 5 << 10,   /* a signal frame with AVX-512, and the tick's own frames: not out of the thread's size */
};
#define SIZE_LIMIT ((size_t)1 << (sizeof(size_t) == 8 ? 46 : 30))

struct chunk;

struct class {
	size_t size;
	bool tcb;
	/* under pool.lock */
	struct kbi_stack *free;
	struct kbi_stack *bare; /* laid out, but no control block could be had */
	struct chunk *unused;
	a32 n_free; /* read without the lock, too */
	int64_t credit; /* mapped stacks promised to nobody */
};

/* One mapping of n stacks. Those from `used` on were never touched: a bare address each. */
struct chunk {
	/* constant */
	uintptr_t base;
	size_t each;
	uint32_t n;
	/* under pool.lock */
	uint32_t used;
	struct chunk *next; /* of the same class, with unused stacks */
};

struct kbi_stack_slot *kbi_stack_slots;
a32 kbi_stack_hunger;

static struct {
	a32 lock;
	a32 n_classes;         /* classes below are constant but for their lists */
	struct class class[CLASSES];
	struct chunk *chunk;
	a32 n_chunks;
	uint32_t chunks, number; /* room for so many, constant; stacks made so far */
	a32 code;                /* it may run on all of them; under the lock */
} pool;

/* ---- lock: short, taken for batches only --------------------------------------------------------- */

static void lock(void) { kbi_lock_take(&pool.lock); }
static void unlock(void) { kbi_lock_leave(&pool.lock); }

/* ---- classes --------------------------------------------------------------------------------------- */

static int find_class(size_t size, bool tcb)
{
	/* acquire: partner is the release in add_class */
	uint32_t n = a_load_acq(&pool.n_classes);

	for (uint32_t i = 0; i < n; i++)
		if (pool.class[i].size == size && pool.class[i].tcb == tcb)
			return (int)i;
	return -1;
}

static int add_class(size_t size, bool tcb)
{
	uint32_t n;
	int c;

	lock();
	c = find_class(size, tcb);
	n = a_load_rlx(&pool.n_classes);
	if (c < 0 && n < CLASSES) {
		pool.class[n] = (struct class){ .size = size, .tcb = tcb };
		a_store_rel(&pool.n_classes, n + 1);
		c = (int)n;
	}
	unlock();
	return c;
}

/* Sizes are rounded up so that few classes serve all: four to a doubling up to 1 MiB, above it two. So there are at
 * most 2 * (2 + 6 * 4 + 26 * 2) and the table is never full. */
static size_t rounded(size_t size)
{
	size_t unit = KBI_PAGE;

	while (unit * 4 < size && unit < 1 << 18)
		unit *= 2;
	if (size > 1 << 20)
		for (unit = 1 << 19; unit * 2 < size; unit *= 2)
			;
	return (size + unit - 1) / unit * unit;
}

_Static_assert(CLASSES < 255, "a class fits a byte, below");
_Static_assert(CLASSES >= 2 * (2 + 6 * 4 + 26 * 2), "a class for each size");

int kbi_stack_class(size_t size, bool tcb)
{
	/* the last answer, for programs that give all threads the same size: size << 9 | tcb << 8 | class + 1 */
	static a64 last;
	/* acquire: partner is the release below; the class */
	uint64_t asked = (uint64_t)size << 1 | tcb, known = a_load_acq(&last);
	size_t rounded_size;
	int c;

	if (size > SIZE_LIMIT)
		return -1;
	if (kbi_likely(known >> 8 == asked && known & 255))
		return (int)(known & 255) - 1;
	rounded_size = rounded(size);
	c = find_class(rounded_size, tcb);
	if (c < 0)
		c = add_class(rounded_size, tcb);
	if (c >= 0)
		a_store_rel(&last, asked << 8 | (uint64_t)(c + 1));
	return c;
}

size_t kbi_stack_class_size(int class)
{
	return pool.class[class].size;
}

static const struct chunk *chunk_of(uintptr_t address)
{
	/* acquire: partner is the release in map_chunk */
	uint32_t n = a_load_acq(&pool.n_chunks);

	for (uint32_t i = 0; i < n; i++) {
		const struct chunk *c = &pool.chunk[i];

		if (address >= c->base && address < c->base + c->each * c->n)
			return c;
	}
	return NULL;
}

size_t kbi_stack_guard_hit(uintptr_t address)
{
	const struct chunk *c = chunk_of(address);

	return c && (address - c->base) % c->each < KBI_PAGE ? c->each - KBI_PAGE : 0;
}

/* ---- code on stacks -------------------------------------------------------------------------------------- */

/* In a handler that may have the runtime's own signals blocked: the holder waits for an answer to one, perhaps. */
static void lock_in_handler(void)
{
	for (unsigned n = 0; !kbi_lock_try(&pool.lock); n++) {
		kbi_everywhere_answer();
		kbi_sys_yield_to_holder(n);
	}
}

/* Another thread may have met the same, and have changed all stacks since the instruction failed. */
bool kbi_stack_follow_code(uintptr_t address)
{
	bool mended;

	if (!chunk_of(address) || kbi_stack_guard_hit(address) || !kbi_stack_code_is_given())
		return false;
	lock_in_handler();
	if (!a_load_rlx(&pool.code)) {
		a_store_rlx(&pool.code, 1);
		for (uint32_t i = 0; i < a_load_rlx(&pool.n_chunks); i++)
			kbi_stack_code_let_run((char *)pool.chunk[i].base, pool.chunk[i].each, pool.chunk[i].n);
	}
	mended = kbi_stack_code_may_run(address);
	unlock();
	return mended;
}

/* ---- making stacks -------------------------------------------------------------------------------------- */

/* The record at the top of [low, end), and what is left below it. */
static struct kbi_stack *lay_out(char *low, char *end, uint32_t number)
{
	uintptr_t top = ((uintptr_t)end - sizeof(struct kbi_stack)) & ~(uintptr_t)(KBI_CACHE_LINE - 1);
	struct kbi_stack *s = (struct kbi_stack *)top;

	*s = (struct kbi_stack){ .low = low, .number = number };
	s->size = (size_t)(top - (uintptr_t)low) - (number % COLOURS) * COLOUR_STEP;
	return s;
}

static bool add_tcb(struct kbi_stack *s)
{
	if ((s->user ? kbi_tcb_make_to_end : kbi_tcb_make)(&s->tcb, s->low, s->size, s->number, NULL))
		return false;
	s->has_tcb = 1;
	s->tp = (kbi_tpword)s->tcb.tp;
	s->low = s->tcb.stack_low;
	s->size = s->tcb.stack_size;
	return true;
}

/* Address space of one stack, guard included. Its size is the thread's own: the record, the colour and a tick come
 * on top of it. */
static size_t footprint(const struct class *c)
{
	size_t b = c->size + TICK_ROOM;

	if (c->tcb) {
		size_t least = kbi_tcb_slab_min(); /* 128 KiB on aarch64 */

		b += kbi_tcb_overhead();
		b = b > least ? b : least;
	}
	b += KBI_PAGE + sizeof(struct kbi_stack) + COLOURS * COLOUR_STEP;
	return (b + KBI_PAGE - 1) & ~(size_t)(KBI_PAGE - 1);
}

/* Under the lock: maps a chunk of stacks for the class; false: no address space. */
static bool map_chunk(struct class *c)
{
	size_t each = footprint(c);
	uint32_t n = each < CHUNK_BYTES ? (uint32_t)(CHUNK_BYTES / each) : 1;
	uint32_t k = a_load_rlx(&pool.n_chunks);
	char *p;

	if (k == pool.chunks)
		return false;
	/* each process makes the guards while the caller waits */
	if (kbi_options.body == KBI_OPT_BODY_PROCESS && n < LEAST_OF_PROCESSES)
		n = LEAST_OF_PROCESSES;
	p = c->tcb ? kbi_segment_map(each * n) : NULL;
	while (!p && !(p = kbi_sys_map(each * n)) && n > 1)
		n = 1;
	if (!p)
		return false;
	madvise(p, each * n, MADV_NOHUGEPAGE);
	if (kbi_unlikely(a_load_rlx(&pool.code)))
		kbi_stack_code_let_run(p, each, n);
	if (kbi_options.body == KBI_OPT_BODY_PROCESS)
		kbi_stack_guard_chunk(p, each, n);
	pool.chunk[k] = (struct chunk){ .base = (uintptr_t)p, .each = each, .n = n, .next = c->unused };
	c->unused = &pool.chunk[k];
	if (!c->tcb)
		c->credit += n;
	/* release: partner is the acquire in kbi_stack_guard_hit */
	a_store_rel(&pool.n_chunks, k + 1);
	return true;
}

/* The address of a stack that was never used, NULL: no address space. */
static char *take_unused(struct class *c, size_t *each, uint32_t *number)
{
	char *p = NULL;

	lock();
	if (c->unused || map_chunk(c)) {
		struct chunk *k = c->unused;

		p = (char *)k->base + k->used * k->each;
		*each = k->each;
		*number = pool.number++;
		if (++k->used == k->n)
			c->unused = k->next;
	}
	unlock();
	return p;
}

static struct kbi_stack *take_bare(struct class *c)
{
	struct kbi_stack *s;

	if (!c->tcb)
		return NULL;
	lock();
	s = c->bare;
	if (s)
		c->bare = s->next;
	unlock();
	return s;
}

static void put_bare(struct class *c, struct kbi_stack *s)
{
	lock();
	s->next = c->bare;
	c->bare = s;
	unlock();
}

static struct kbi_stack *make(int cls)
{
	struct kbi_stack *s;
	uint32_t number;
	size_t each;
	char *p = take_unused(&pool.class[cls], &each, &number);
	bool guarded;

	if (!p)
		return NULL;
	guarded = kbi_options.body == KBI_OPT_BODY_PROCESS ? kbi_stack_guard_any() : kbi_stack_guard(p);
	s = lay_out(p + KBI_PAGE, p + each, number);
	s->class = (uint8_t)cls;
	s->guarded = guarded;
	kbi_san_stack(s->low, p + each);
	return s;
}

static struct kbi_stack *fresh(int cls)
{
	struct class *c = &pool.class[cls];
	struct kbi_stack *s = take_bare(c);

	if (!s)
		s = make(cls);
	if (!s || !c->tcb || add_tcb(s))
		return s;
	/* no kernel thread or memory for a block: later, perhaps */
	put_bare(c, s);
	return NULL;
}

/* ---- pools ---------------------------------------------------------------------------------------------- */

static struct kbi_stack *take_batch(struct kbi_stack_slot *s, int cls)
{
	struct class *c = &pool.class[cls];
	struct kbi_stack *first;
	uint32_t n = 0;

	if (!a_load_rlx(&c->n_free))
		return NULL;
	lock();
	first = c->free;
	for (struct kbi_stack *k = first; k && n < BATCH; k = c->free) {
		c->free = k->next;
		k->next = n++ ? s->list[cls].free : NULL;
		s->list[cls].free = k;
	}
	a_store_rlx(&c->n_free, a_load_rlx(&c->n_free) - n);
	unlock();
	s->list[cls].n += n;
	return first;
}

/* Under the lock. */
static void give(struct kbi_stack_slot *s, int cls, uint32_t n)
{
	struct class *c = &pool.class[cls];

	a_store_rlx(&c->n_free, a_load_rlx(&c->n_free) + n);
	s->list[cls].n -= n;
	for (; n > 0; n--) {
		struct kbi_stack *k = s->list[cls].free;

		s->list[cls].free = k->next;
		k->next = c->free;
		c->free = k;
	}
}

static void give_batch(struct kbi_stack_slot *s, int cls)
{
	lock();
	give(s, cls, CACHE / 2);
	unlock();
}

int kbi_stack_setup(unsigned slots)
{
	kbi_stack_slots = kbi_sys_map_table(slots * sizeof *kbi_stack_slots);
	pool.chunks = (uint32_t)(kbi_sys_reserve(CHUNKS * sizeof *pool.chunk) / sizeof *pool.chunk);
	pool.chunk = kbi_sys_map_table(pool.chunks * sizeof *pool.chunk);
	if (!kbi_stack_slots || !pool.chunk)
		return ENOMEM;
	kbi_stack_guard_setup();
	a_store_rlx(&pool.code, kbi_stack_code_is_asked() && kbi_stack_code_is_given());
	return 0;
}

/* Slot 0 is shared by all callers that are no VP: they take turns. */
static a32 outsiders;

static struct kbi_stack_slot *enter(unsigned slot)
{
	if (slot == 0)
		kbi_lock_take(&outsiders);
	return &kbi_stack_slots[slot];
}

static void leave(unsigned slot)
{
	if (slot == 0)
		kbi_lock_leave(&outsiders);
}

static void forget_free(struct class *c)
{
	c->free = c->bare = NULL;
	c->unused = NULL;
	c->credit = 0;
	a_store_rlx(&c->n_free, 0);
}

void kbi_stack_after_fork(void)
{
	if (a_load_rlx(&outsiders)) {
		memset(kbi_stack_slots[0].list, 0, sizeof kbi_stack_slots[0].list);
		leave(0);
	}
	if (!a_load_rlx(&pool.lock))
		return;
	for (uint32_t i = 0; i < a_load_rlx(&pool.n_classes); i++)
		forget_free(&pool.class[i]);
	unlock();
}

void kbi_stack_surrender(unsigned slot)
{
	struct kbi_stack_slot *s = enter(slot);
	uint32_t hunger = a_load_rlx(&kbi_stack_hunger);

	lock();
	for (uint32_t i = 0; i < a_load_rlx(&pool.n_classes); i++) {
		give(s, (int)i, s->list[i].n);
		pool.class[i].credit += s->list[i].credit;
		s->list[i].credit = 0;
	}
	unlock();
	/* release: partner is the acquire in kbi_stack_has_surrendered */
	a_store_rel(&s->hunger_seen, hunger);
	leave(slot);
}

static struct kbi_stack *get(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack *k;

	if (kbi_unlikely(!s->list[cls].free) && !take_batch(s, cls)) {
		k = fresh(cls);
		/* the one that was promised lies with another slot, and may be promised again */
		if (k && pool.class[cls].tcb)
			s->list[cls].credit++;
		return k;
	}
	k = s->list[cls].free;
	s->list[cls].free = k->next;
	s->list[cls].n--;
	return k;
}

struct kbi_stack *kbi_stack_get_slow(unsigned slot, int cls)
{
	struct kbi_stack *k = get(enter(slot), cls);

	leave(slot);
	return k;
}

/* The program may reuse its memory from now on, so libc must forget the block in it. That takes a kernel thread for a
 * moment: where the system has none left, the caller waits for one. */
static void end_adopted(struct kbi_stack *k)
{
	struct timespec nap = { 0, 1000000 };

	if (!k->has_tcb)
		return;
	kbi_door_forget(k->tcb.tp);
	for (unsigned i = 0; kbi_tcb_destroy(&k->tcb) == EAGAIN; i++) {
		if (i == 1000)
			kbi_sys_message("a thread on a stack of the program's own cannot end: no kernel thread to be had; "
					"still trying");
		kbi_sys(SYS_nanosleep, &nap, NULL);
	}
}

void kbi_stack_put_slow(unsigned slot, struct kbi_stack *k)
{
	struct kbi_stack_slot *s;

	if (k->user) {
		end_adopted(k);
		return;
	}
	s = enter(slot);
	k->next = s->list[k->class].free;
	s->list[k->class].free = k;
	if (++s->list[k->class].n > CACHE)
		give_batch(s, k->class);
	leave(slot);
}

struct kbi_stack *kbi_stack_adopt(void *low, size_t size, bool tcb)
{
	struct kbi_stack *k;
	uint32_t number;

	if (size < sizeof *k + COLOURS * COLOUR_STEP + KBI_PAGE)
		return NULL;
	lock();
	number = pool.number++;
	unlock();
	k = lay_out(low, (char *)low + size, number);
	k->user = 1;
	if (tcb && !add_tcb(k))
		return NULL;
	return k;
}

/* Under the lock: gets some credit of the class, mapping ahead if there is none. A control block takes more than
 * address space: what is promised there are blocks that exist. */
static int32_t borrow(struct class *c)
{
	int64_t n;

	if (c->credit <= 0 && (c->tcb || !map_chunk(c)))
		return 0;
	n = c->credit < BATCH ? c->credit : BATCH;
	c->credit -= n;
	return (int32_t)n;
}

/* A new one with a control block. */
static bool make_ahead(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack *k = pool.class[cls].tcb ? fresh(cls) : NULL;

	if (!k)
		return false;
	k->next = s->list[cls].free;
	s->list[cls].free = k;
	s->list[cls].credit++;
	/* the thread may first run on another VP */
	if (++s->list[cls].n > CACHE)
		give_batch(s, cls);
	return true;
}

int kbi_stack_reserve_slow(unsigned slot, int cls)
{
	struct kbi_stack_slot *s = enter(slot);

	if (kbi_unlikely(s->list[cls].credit == 0)) {
		lock();
		s->list[cls].credit = borrow(&pool.class[cls]);
		unlock();
	}
	if (s->list[cls].credit == 0 && !make_ahead(s, cls)) {
		leave(slot);
		return ENOMEM;
	}
	s->list[cls].credit--;
	leave(slot);
	return 0;
}

void kbi_stack_unreserve_slow(unsigned slot, int cls)
{
	struct kbi_stack_slot *s = enter(slot);

	if (++s->list[cls].credit > CACHE) {
		lock();
		pool.class[cls].credit += s->list[cls].credit / 2;
		unlock();
		s->list[cls].credit -= s->list[cls].credit / 2;
	}
	leave(slot);
}
