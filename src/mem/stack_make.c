/* mem/stack_make.c - makes stacks: maps address space for many at once, and gives each its guard,
 * its record and its control block. Contract in stack_make.h.
 *
 * Layout from low to high addresses: guard page, usable bytes, TLS and control block (if any), a
 * gap of a multiple of COLOUR_STEP, record. The gap differs from stack to stack, so that their
 * first frames fall into different cache sets. */
#include "mem/stack_make.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/option.h"
#include "base/san.h"
#include "libc/broadcast.h"
#include "mem/heap_door.h"
#include "mem/stack_code.h"
#include "mem/stack_guard.h"
#include "os/sys.h"

enum {
	CHUNK_BYTES = 4 << 20, /* bytes mapped at once, if more than one stack fits */
	LEAST_OF_PROCESSES = 16,
	COLOURS = 12, COLOUR_STEP = 192,
	TICK_ROOM = 5 << 10,   /* bytes on top of the thread's size, for a signal frame with AVX-512
				* and the tick's own frames */
};

struct kbi_stack_pool kbi_stack_pool;

static const struct kbi_stack_chunk *chunk_of(uintptr_t address)
{
	/* acquire: pairs with the release in kbi_stack_map_ahead */
	uint32_t n = a_load_acq(&kbi_stack_pool.n_chunks);

	for (uint32_t i = 0; i < n; i++) {
		const struct kbi_stack_chunk *c = &kbi_stack_pool.chunk[i];

		if (address >= c->base && address < c->base + c->each * c->n)
			return c;
	}
	return NULL;
}

size_t kbi_stack_guard_hit(uintptr_t address)
{
	const struct kbi_stack_chunk *c = chunk_of(address);

	return c && (address - c->base) % c->each < KBI_PAGE ? c->each - KBI_PAGE : 0;
}

/* ---- code on stacks -------------------------------------------------------------------------- */

/* Takes the lock in a handler that may have the runtime's own signals blocked. The holder may wait
 * for this process to make a call (libc/broadcast), so the loop makes such calls meanwhile. */
static void lock_in_handler(void)
{
	for (unsigned n = 0; !kbi_lock_try(&kbi_stack_pool.lock); n++) {
		kbi_broadcast_answer();
		kbi_sys_yield_to_holder(n);
	}
}

/* Another thread may have met the same fault, and may have changed all stacks since the instruction
 * failed. */
bool kbi_stack_follow_code(uintptr_t address)
{
	bool mended;

	if (!chunk_of(address) || kbi_stack_guard_hit(address) || !kbi_stack_code_is_given())
		return false;
	lock_in_handler();
	if (!a_load_rlx(&kbi_stack_pool.code)) {
		a_store_rlx(&kbi_stack_pool.code, 1);
		for (uint32_t i = 0; i < a_load_rlx(&kbi_stack_pool.n_chunks); i++) {
			const struct kbi_stack_chunk *c = &kbi_stack_pool.chunk[i];

			kbi_stack_code_let_run((char *)c->base, c->each, c->n);
		}
	}
	mended = kbi_stack_code_may_run(address);
	kbi_stack_unlock();
	return mended;
}

/* ---- making stacks --------------------------------------------------------------------------- */

/* Puts the record at the top of [low, end), and computes the usable bytes below it. */
static struct kbi_stack *lay_out_stack(char *low, char *end, uint32_t number)
{
	uintptr_t top = ((uintptr_t)end - sizeof(struct kbi_stack)) & ~(uintptr_t)(KBI_CACHE_LINE - 1);
	struct kbi_stack *s = (struct kbi_stack *)top;

	*s = (struct kbi_stack){ .low = low, .number = number };
	s->size = (size_t)(top - (uintptr_t)low) - (number % COLOURS) * COLOUR_STEP;
	return s;
}

bool kbi_stack_add_block(struct kbi_stack *s)
{
	if ((s->user ? kbi_tcb_make_to_end : kbi_tcb_make)(&s->tcb, s->low, s->size, s->number, NULL))
		return false;
	s->has_tcb = 1;
	s->tp = (kbi_tpword)s->tcb.tp;
	s->low = s->tcb.stack_low;
	s->size = s->tcb.stack_size;
	return true;
}

/* Returns the bytes of address space of one stack, guard included. The class's size is entirely the
 * thread's: record, colour and tick come on top of it. */
static size_t stack_footprint(const struct kbi_stack_kind *c)
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

bool kbi_stack_map_ahead(struct kbi_stack_kind *c)
{
	size_t each = stack_footprint(c);
	uint32_t n = each < CHUNK_BYTES ? (uint32_t)(CHUNK_BYTES / each) : 1;
	uint32_t k = a_load_rlx(&kbi_stack_pool.n_chunks);
	char *p;

	if (k == kbi_stack_pool.chunks)
		return false;
	/* each process makes the guards while the caller waits: so make many at once */
	if (kbi_options.body == KBI_OPT_BODY_PROCESS && n < LEAST_OF_PROCESSES)
		n = LEAST_OF_PROCESSES;
	p = c->tcb ? kbi_segment_map(each * n) : NULL;
	while (!p && !(p = kbi_sys_map(each * n)) && n > 1)
		n = 1;
	if (!p)
		return false;
	madvise(p, each * n, MADV_NOHUGEPAGE);
	if (kbi_unlikely(a_load_rlx(&kbi_stack_pool.code)))
		kbi_stack_code_let_run(p, each, n);
	if (kbi_options.body == KBI_OPT_BODY_PROCESS)
		kbi_stack_guard_chunk(p, each, n);
	kbi_stack_pool.chunk[k] = (struct kbi_stack_chunk){
		.base = (uintptr_t)p, .each = each, .n = n, .next = c->unused
	};
	c->unused = &kbi_stack_pool.chunk[k];
	if (!c->tcb)
		c->credit += n;
	/* release: pairs with the acquire in chunk_of */
	a_store_rel(&kbi_stack_pool.n_chunks, k + 1);
	return true;
}

/* Returns the address of a stack that was never used; NULL: no address space. */
static char *take_unused_stack(struct kbi_stack_kind *c, size_t *each, uint32_t *number)
{
	char *p = NULL;

	kbi_stack_lock();
	if (c->unused || kbi_stack_map_ahead(c)) {
		struct kbi_stack_chunk *k = c->unused;

		p = (char *)k->base + k->used * k->each;
		*each = k->each;
		*number = kbi_stack_pool.number++;
		if (++k->used == k->n)
			c->unused = k->next;
	}
	kbi_stack_unlock();
	return p;
}

static struct kbi_stack *take_bare(struct kbi_stack_kind *c)
{
	struct kbi_stack *s;

	if (!c->tcb)
		return NULL;
	kbi_stack_lock();
	s = c->bare;
	if (s)
		c->bare = s->next;
	kbi_stack_unlock();
	return s;
}

void kbi_stack_put_bare(struct kbi_stack *s)
{
	struct kbi_stack_kind *c = &kbi_stack_pool.class[s->class];

	kbi_stack_lock();
	s->next = c->bare;
	c->bare = s;
	kbi_stack_unlock();
}

static struct kbi_stack *make_stack(int cls)
{
	struct kbi_stack *s;
	uint32_t number;
	size_t each;
	char *p = take_unused_stack(&kbi_stack_pool.class[cls], &each, &number);
	bool guarded;

	if (!p)
		return NULL;
	guarded = kbi_options.body == KBI_OPT_BODY_PROCESS ? kbi_stack_guard_any() : kbi_stack_guard(p);
	s = lay_out_stack(p + KBI_PAGE, p + each, number);
	s->class = (uint8_t)cls;
	s->guarded = guarded;
	kbi_san_stack(s->low, p + each);
	return s;
}

struct kbi_stack *kbi_stack_fresh(int cls)
{
	struct kbi_stack *s = take_bare(&kbi_stack_pool.class[cls]);

	return s ? s : make_stack(cls);
}

struct kbi_stack *kbi_stack_adopt(void *low, size_t size)
{
	struct kbi_stack *k;
	uint32_t number;

	if (size < sizeof *k + COLOURS * COLOUR_STEP + KBI_PAGE)
		return NULL;
	kbi_stack_lock();
	number = kbi_stack_pool.number++;
	kbi_stack_unlock();
	k = lay_out_stack(low, (char *)low + size, number);
	k->user = 1;
	return k;
}

void kbi_stack_end_adopted(struct kbi_stack *k)
{
	struct timespec nap = { 0, 1000000 };

	if (!k->has_tcb)
		return;
	kbi_door_forget(k->tcb.tp);
	for (unsigned i = 0; kbi_tcb_destroy(&k->tcb) == EAGAIN; i++) {
		if (i == 1000)
			kbi_sys_message("a thread on a stack of the program's own cannot end: "
					"no kernel thread to be had; still trying");
		kbi_sys(SYS_nanosleep, &nap, NULL);
	}
}
