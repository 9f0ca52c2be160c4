/* mem/stack.c - the stack pools. Contract in stack.h.
 *
 * A class is a pair (size, with control block or not). Each slot keeps a list of free stacks for
 * each class and gives half of a long list to the class's common list, from which a slot with an
 * empty list takes a batch. On a slot's list and on the common lists, stacks used since they were
 * last trimmed come before trimmed stacks. Stacks are trimmed (their pages given to the kernel)
 * while a VP is idle.
 *
 * A control block can be made by a thread's creator only, for libc may wait meanwhile. So a promise
 * of a block is backed by a block: the credits of all slots, the class's credit and the promises
 * not yet redeemed are together at most the blocks in the common list. A block that goes to the
 * common list brings a credit with it (give_stacks); a block that leaves the list takes a credit
 * away (take_batch), or is the promised block (kbi_stack_redeem_slow). A slot's own blocks back
 * nothing, so that a thread's first run may take the hottest of them: then its promise is a credit
 * again. */
#include "mem/stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/option.h"
#include "mem/stack_code.h"
#include "mem/stack_guard.h"
#include "os/sys.h"

enum {
	BATCH = 64,           /* stacks moved at once between a slot and the common list */
	CACHE = KBI_STACK_CACHE,
	CHUNKS = 1 << 20, /* mappings at most */
	/* bytes at the top of a stack that are not trimmed: the next thread uses them anyway */
	KEPT = 16 << 10,
	AT_ONCE = 8,     /* stacks trimmed between two searches for work */
};
#define SIZE_LIMIT ((size_t)1 << (sizeof(size_t) == 8 ? 46 : 30))

struct kbi_stack_slot *kbi_stack_slots;
a32 kbi_stack_reclaim_wanted;
static uint32_t n_slots;

/* ---- classes --------------------------------------------------------------------------------- */

static int find_class(size_t size, bool tcb)
{
	/* acquire: pairs with the release in add_class */
	uint32_t n = a_load_acq(&kbi_stack_pool.n_classes);

	for (uint32_t i = 0; i < n; i++)
		if (kbi_stack_pool.class[i].size == size && kbi_stack_pool.class[i].tcb == tcb)
			return (int)i;
	return -1;
}

static int add_class(size_t size, bool tcb)
{
	uint32_t n;
	int c;

	kbi_stack_lock();
	c = find_class(size, tcb);
	n = a_load_rlx(&kbi_stack_pool.n_classes);
	if (c < 0 && n < KBI_STACK_CLASSES) {
		kbi_stack_pool.class[n] = (struct kbi_stack_kind){ .size = size, .tcb = tcb };
		/* release: pairs with the acquires in find_class, kbi_stack_is_used,
		 * give_outsiders and kbi_stack_trim; the class is complete */
		a_store_rel(&kbi_stack_pool.n_classes, n + 1);
		c = (int)n;
	}
	kbi_stack_unlock();
	return c;
}

/* Rounds sizes up so that few classes serve all sizes: four classes for each doubling up to 1 MiB,
 * two above. So there are at most 2 * (2 + 6 * 4 + 26 * 2) classes, and the table is never full. */
static size_t round_stack_size(size_t size)
{
	size_t unit = KBI_PAGE;

	while (unit * 4 < size && unit < 1 << 18)
		unit *= 2;
	if (size > 1 << 20)
		for (unit = 1 << 19; unit * 2 < size; unit *= 2)
			;
	return (size + unit - 1) / unit * unit;
}

_Static_assert(KBI_STACK_CLASSES < 255, "a class fits a byte, below");
_Static_assert(KBI_STACK_CLASSES >= 2 * (2 + 6 * 4 + 26 * 2), "a class for each size");

int kbi_stack_class(size_t size, bool tcb)
{
	/* the last answer, for programs that give all threads the same size: size << 9 | tcb << 8 |
	 * class + 1 */
	static a64 last;
	/* acquire: pairs with the release below; the class is complete */
	uint64_t asked = (uint64_t)size << 1 | tcb, known = a_load_acq(&last);
	size_t rounded_size;
	int c;

	if (size > SIZE_LIMIT)
		return -1;
	if (kbi_likely(known >> 8 == asked && known & 255))
		return (int)(known & 255) - 1;
	rounded_size = round_stack_size(size);
	c = find_class(rounded_size, tcb);
	if (c < 0)
		c = add_class(rounded_size, tcb);
	if (c >= 0)
		/* release: pairs with the acquire above */
		a_store_rel(&last, asked << 8 | (uint64_t)(c + 1));
	return c;
}

size_t kbi_stack_class_size(int class)
{
	return kbi_stack_pool.class[class].size;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Under the lock: moves at most n stacks from the common list to the slot's. All trimmed or none,
 * so that trimmed stacks lie behind used ones in the slot's list, too. Returns how many. */
static uint32_t move_to_slot(struct kbi_stack_slot *s, int cls, uint32_t most)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[cls];
	struct kbi_stack **from = c->free ? &c->free : &c->trimmed, *k;
	uint32_t n = 0;

	for (; n < most && (k = *from); n++) {
		*from = k->next;
		k->next = s->list[cls].free;
		s->list[cls].free = k;
	}
	a_store_rlx(&c->n_free, a_load_rlx(&c->n_free) - n);
	if (from == &c->free)
		a_store_rlx(&c->n_used, a_load_rlx(&c->n_used) - n);
	s->list[cls].n += n;
	return n;
}

/* Under the lock: takes n credits away, the slot's first. */
static void spend_credit(struct kbi_stack_list *l, struct kbi_stack_kind *c, uint32_t n)
{
	uint32_t own = (uint32_t)l->credit < n ? (uint32_t)l->credit : n;

	l->credit -= (int32_t)own;
	c->credit -= n - own;
}

/* The slot's list is empty. False: there is no common stack, or all are promised. */
static bool take_batch(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[cls];
	struct kbi_stack_list *l = &s->list[cls];
	uint32_t most = BATCH, n;

	if (!a_load_rlx(&c->n_free))
		return false;
	kbi_stack_lock();
	if (c->tcb && c->credit + l->credit < BATCH)
		most = (uint32_t)(c->credit + l->credit);
	n = move_to_slot(s, cls, most);
	if (c->tcb)
		spend_credit(l, c, n);
	kbi_stack_unlock();
	return n > 0;
}

/* Under the lock: moves n stacks from the slot's list to the common list. */
static void give_stacks(struct kbi_stack_slot *s, int cls, uint32_t n)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[cls];

	if (c->tcb)
		c->credit += n;
	a_store_rlx(&c->n_free, a_load_rlx(&c->n_free) + n);
	s->list[cls].n -= n;
	for (; n > 0; n--) {
		struct kbi_stack *k = s->list[cls].free, **to = k->trimmed ? &c->trimmed : &c->free;

		if (!k->trimmed)
			a_store_rlx(&c->n_used, a_load_rlx(&c->n_used) + 1);
		s->list[cls].free = k->next;
		k->next = *to;
		*to = k;
	}
}

static void give_batch(struct kbi_stack_slot *s, int cls)
{
	kbi_stack_lock();
	give_stacks(s, cls, CACHE / 2);
	kbi_stack_unlock();
}

int kbi_stack_setup(unsigned slots)
{
	const size_t each = sizeof *kbi_stack_pool.chunk;

	n_slots = slots;
	kbi_stack_slots = kbi_sys_map_table(slots * sizeof *kbi_stack_slots);
	kbi_stack_pool.chunks = (uint32_t)(kbi_sys_reserve(CHUNKS * each) / each);
	kbi_stack_pool.chunk = kbi_sys_map_table(kbi_stack_pool.chunks * each);
	if (!kbi_stack_slots || !kbi_stack_pool.chunk)
		return ENOMEM;
	kbi_stack_guard_setup();
	a_store_rlx(&kbi_stack_pool.code, kbi_stack_code_is_asked() && kbi_stack_code_is_given());
	return 0;
}

/* The lock of slot 0, which all callers that are no VP share. */
static a32 outsiders;

static struct kbi_stack_slot *enter_stack_slot(unsigned slot)
{
	if (slot == 0)
		kbi_lock_take(&outsiders);
	return &kbi_stack_slots[slot];
}

static void leave_stack_slot(unsigned slot)
{
	if (slot == 0)
		kbi_lock_leave(&outsiders);
}

/* Blocks and promises: no slot may promise what is forgotten. */
static void forget_free_stacks(uint32_t cls)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[cls];

	for (uint32_t i = 0; i < n_slots; i++)
		kbi_stack_slots[i].list[cls].credit = 0;
	c->free = c->trimmed = c->bare = NULL;
	c->unused = NULL;
	c->credit = 0;
	a_store_rlx(&c->n_free, 0);
	a_store_rlx(&c->n_used, 0);
}

void kbi_stack_after_fork(void)
{
	if (a_load_rlx(&outsiders)) {
		memset(kbi_stack_slots[0].list, 0, sizeof kbi_stack_slots[0].list);
		leave_stack_slot(0);
	}
	if (!a_load_rlx(&kbi_stack_pool.lock))
		return;
	for (uint32_t i = 0; i < a_load_rlx(&kbi_stack_pool.n_classes); i++)
		forget_free_stacks(i);
	kbi_stack_unlock();
}

void kbi_stack_reclaim(unsigned slot)
{
	struct kbi_stack_slot *s = enter_stack_slot(slot);
	uint32_t request = a_load_rlx(&kbi_stack_reclaim_wanted);

	kbi_stack_lock();
	for (uint32_t i = 0; i < a_load_rlx(&kbi_stack_pool.n_classes); i++) {
		give_stacks(s, (int)i, s->list[i].n);
		kbi_stack_pool.class[i].credit += s->list[i].credit;
		s->list[i].credit = 0;
	}
	kbi_stack_unlock();
	/* release: pairs with the acquire in kbi_stack_is_reclaimed */
	a_store_rel(&s->reclaim_seen, request);
	leave_stack_slot(slot);
}

static struct kbi_stack *get_free_stack(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack *k;

	if (kbi_unlikely(!s->list[cls].free) && !take_batch(s, cls))
		return kbi_stack_pool.class[cls].tcb ? NULL : kbi_stack_fresh(cls);
	k = s->list[cls].free;
	s->list[cls].free = k->next;
	s->list[cls].n--;
	return k;
}

struct kbi_stack *kbi_stack_get_slow(unsigned slot, int cls)
{
	struct kbi_stack *k = get_free_stack(enter_stack_slot(slot), cls);

	leave_stack_slot(slot);
	return k;
}

struct kbi_stack *kbi_stack_redeem_slow(unsigned slot, int cls)
{
	struct kbi_stack_slot *s = &kbi_stack_slots[slot];
	struct kbi_stack *k;

	kbi_stack_lock();
	move_to_slot(s, cls, 1);
	kbi_stack_unlock();
	k = s->list[cls].free;
	if (kbi_unlikely(!k))
		return NULL;
	s->list[cls].free = k->next;
	s->list[cls].n--;
	return k;
}

void kbi_stack_put_slow(unsigned slot, struct kbi_stack *k)
{
	struct kbi_stack_slot *s;

	if (k->user)
		return;
	s = enter_stack_slot(slot);
	k->trimmed = 0;
	k->next = s->list[k->class].free;
	s->list[k->class].free = k;
	if (++s->list[k->class].n > CACHE)
		give_batch(s, k->class);
	leave_stack_slot(slot);
}

/* ---- giving memory back ---------------------------------------------------------------------- */

/* Gives the stack's pages to the kernel. libc does this at each thread's end; here that would take
 * as long as the rest of a thread's life costs, so it waits for idle time. Pages that are locked in
 * memory stay. */
static void trim_stack(struct kbi_stack *k)
{
	const uintptr_t page = KBI_PAGE - 1;
	uintptr_t from = ((uintptr_t)k->low + page) & ~page,
		  to = ((uintptr_t)k->low + k->size - KEPT) & ~page;

	if (k->size > KEPT && to > from)
		kbi_sys(SYS_madvise, from, to - from,
			kbi_options.body == KBI_OPT_BODY_PROCESS ? MADV_REMOVE : MADV_DONTNEED);
	k->trimmed = 1;
}

bool kbi_stack_is_used(unsigned slot)
{
	const struct kbi_stack_list *l = kbi_stack_slots[slot].list;
	/* acquire: pairs with the release in add_class */
	uint32_t n = a_load_acq(&kbi_stack_pool.n_classes);

	for (uint32_t i = 0; i < n; i++)
		if (a_load_rlx(&kbi_stack_pool.class[i].n_used) || (l[i].free && !l[i].free->trimmed))
			return true;
	return false;
}

/* Gives some used stacks of the slot to the common list; they lie in front of its trimmed
 * stacks. */
static void give_used(struct kbi_stack_slot *s, int cls)
{
	const struct kbi_stack *k = s->list[cls].free;
	uint32_t n = 0;

	for (; n < AT_ONCE && k && !k->trimmed; k = k->next)
		n++;
	if (!n)
		return;
	kbi_stack_lock();
	give_stacks(s, cls, n);
	kbi_stack_unlock();
}

/* Trims some common stacks. Holds the lock while it trims a stack, so that no search for a free
 * stack misses it. */
static void trim_used_stacks(struct kbi_stack_kind *c)
{
	for (unsigned n = 0; n < AT_ONCE && a_load_rlx(&c->n_used); n++) {
		struct kbi_stack *k;

		kbi_stack_lock();
		k = c->free;
		if (k) {
			trim_stack(k);
			c->free = k->next;
			k->next = c->trimmed;
			c->trimmed = k;
			a_store_rlx(&c->n_used, a_load_rlx(&c->n_used) - 1);
		}
		kbi_stack_unlock();
	}
}

/* Makes used stacks of slot 0 common. Does not wait for slot 0's lock, because the caller is an
 * idle VP. */
static void give_outsiders(void)
{
	/* acquire: pairs with the release in add_class */
	uint32_t n = a_load_acq(&kbi_stack_pool.n_classes);

	if (!kbi_lock_try(&outsiders))
		return;
	for (uint32_t i = 0; i < n; i++)
		give_used(&kbi_stack_slots[0], (int)i);
	leave_stack_slot(0);
}

void kbi_stack_trim(unsigned slot)
{
	/* acquire: pairs with the release in add_class */
	uint32_t n = a_load_acq(&kbi_stack_pool.n_classes);

	if (slot == 1)
		give_outsiders();
	for (uint32_t i = 0; i < n; i++) {
		give_used(&kbi_stack_slots[slot], (int)i);
		trim_used_stacks(&kbi_stack_pool.class[i]);
	}
}

/* Under the lock: gives what the slot keeps to the common list, so that it can be promised; the
 * hottest stays. */
static void give_cold(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack_list *l = &s->list[cls];
	struct kbi_stack *hot = l->free;

	if (l->n < 2)
		return;
	l->free = hot->next;
	give_stacks(s, cls, l->n - 1 < BATCH ? l->n - 1 : BATCH);
	hot->next = l->free;
	l->free = hot;
}

/* Under the lock: returns some credit of the class, and finds more to promise if there is none. */
static int32_t borrow_credit(struct kbi_stack_slot *s, int cls)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[cls];
	int64_t n;

	if (c->credit <= 0 && c->tcb)
		give_cold(s, cls);
	if (c->credit <= 0 && (c->tcb || !kbi_stack_map_ahead(c)))
		return 0;
	n = c->credit < BATCH ? c->credit : BATCH;
	c->credit -= n;
	return (int32_t)n;
}

int kbi_stack_reserve_slow(unsigned slot, int cls)
{
	struct kbi_stack_slot *s = enter_stack_slot(slot);
	bool has;

	if (kbi_unlikely(s->list[cls].credit == 0)) {
		kbi_stack_lock();
		s->list[cls].credit = borrow_credit(s, cls);
		kbi_stack_unlock();
	}
	has = s->list[cls].credit > 0;
	s->list[cls].credit -= has;
	leave_stack_slot(slot);
	return has ? 0 : ENOMEM;
}

struct kbi_stack *kbi_stack_get_or_make(int cls)
{
	bool tcb = kbi_stack_pool.class[cls].tcb;
	struct kbi_stack *k;

	if (!tcb && kbi_stack_reserve_slow(0, cls))
		return NULL;
	k = kbi_stack_get_slow(0, cls);
	if (!k && !tcb)
		kbi_stack_unreserve_slow(0, cls);
	if (k || !tcb || !(k = kbi_stack_fresh(cls)) || kbi_stack_add_block(k))
		return k;
	kbi_stack_put_bare(k);
	return NULL;
}

void kbi_stack_unreserve_slow(unsigned slot, int cls)
{
	struct kbi_stack_slot *s = enter_stack_slot(slot);

	if (++s->list[cls].credit > CACHE) {
		kbi_stack_lock();
		kbi_stack_pool.class[cls].credit += s->list[cls].credit / 2;
		kbi_stack_unlock();
		s->list[cls].credit -= s->list[cls].credit / 2;
	}
	leave_stack_slot(slot);
}
