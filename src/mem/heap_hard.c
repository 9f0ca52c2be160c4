/* mem/heap_hard.c - hardened mode. Contract in heap_hard.h.
 *
 *   | n bytes of the program's | pattern, 56 bytes or more | seal, 8 bytes |
 *
 * The seal is the last word of the block as the heap knows it: the number of pattern bytes, and
 * above that 40 bits of a keyed hash of this number and of the block's address. So the value of a
 * seal reveals nothing about the seal of another block or of another length. A seal with any bit
 * changed is invalid, except once in 2^40 times.
 *
 * A freed block is filled and kept in a queue of its owner before it goes to the heap: until then
 * it is not given out. Its fill is checked when it leaves the queue, and again when the heap gives
 * it out. */
#include "mem/heap_hard.h"

#include <string.h>
#include <sys/mman.h>

#include "mem/heap_guard.h"
#include "mem/heap_large.h"
#include "mem/heap_owner.h"
#include "os/random.h"
#include "os/sys.h"

enum {
	SEAL = sizeof(uint64_t),
	ZONE = 64, /* a write up to this many bytes behind the end is found */
	PATTERN = 0xa5,
	FREED = 0xdd,
	SCRUB = 4096, /* bytes of a freed block that are filled, at most */
	PAD_BITS = 24,
};

static uint64_t key[2]; /* constant */

void kbi_hard_setup(void)
{
	kbi_random(key, sizeof key);
	kbi_space.marked = true;
	kbi_owner_hardened = true;
}

/* ---- which blocks the program has ------------------------------------------------------------ */

static a64 *live_word(const struct kbi_slab *s, uint32_t i)
{
	uint32_t word = i / 64;

	return (a64 *)kbi_space_marks(s + word / KBI_SLAB_WORDS) + word % KBI_SLAB_WORDS;
}

static a64 *used_word(const struct kbi_slab *s, uint32_t i)
{
	return live_word(s, i) + KBI_SLAB_WORDS;
}

static bool is_live(const struct kbi_slab *s, uint32_t i)
{
	return a_load_rlx(live_word(s, i)) & (uint64_t)1 << i % 64;
}

/* Sets the block's bit to `live` and returns whether this changed it. Other threads change other
 * bits of the word. */
static bool set_live(const struct kbi_slab *s, uint32_t i, bool live)
{
	uint64_t bit = (uint64_t)1 << i % 64;

	if (live)
		return !(a_or_rlx(live_word(s, i), bit) & bit);
	return a_and_rlx(live_word(s, i), ~bit) & bit;
}

/* Sets the bit "the program has had this block of the slab" and returns whether it was clear: then
 * the block has not been filled. */
static bool set_used(const struct kbi_slab *s, uint32_t i)
{
	uint64_t bit = (uint64_t)1 << i % 64;

	return !(a_load_rlx(used_word(s, i)) & bit) && !(a_or_rlx(used_word(s, i), bit) & bit);
}

/* ---- blocks as the heap knows them ----------------------------------------------------------- */

struct block {
	struct kbi_slab *slab;
	uint32_t index, tag;
	size_t size;
	bool exact; /* p is the block's beginning */
};

static struct block describe_block(const void *p)
{
	size_t unit = kbi_space_unit(p);
	struct block b = { 0 };

	if (unit >= kbi_space.units)
		return b;
	b.tag = a_load_rlx(&kbi_space.tag[unit]);
	if (!b.tag)
		return b;
	b.slab = kbi_space_slab(p);
	if (b.tag == KBI_TAG_LARGE) {
		b.exact = kbi_large_is(p);
		b.size = kbi_large_bytes(p);
	} else {
		b.index = kbi_slab_index(b.slab, p, &b.exact);
		b.size = kbi_slab_class[b.slab->class].size;
	}
	return b;
}

static uint64_t *seal_of(const void *p, size_t size)
{
	return (uint64_t *)((char *)p + size - SEAL);
}

static uint64_t make_seal(const void *p, size_t pad)
{
	return kbi_random_hash(key, (uintptr_t)p, pad) >> PAD_BITS << PAD_BITS | pad;
}

static void seal_block(void *p, size_t n, size_t size)
{
	size_t pad = size - SEAL - n;

	memset((char *)p + n, PATTERN, pad);
	*seal_of(p, size) = make_seal(p, pad);
}

static KBI_NORETURN void abort_with_block(const char *what, const void *p, const struct block *b,
					  const void *caller)
{
	if (b->size)
		kbi_sys_fatal("heap: %s: block %p, size class %zu, called from %p", what, kbi_sys_shown(p),
			      b->size, kbi_sys_shown(caller));
	kbi_sys_fatal("heap: %s: address %p is not the heap's, called from %p", what, kbi_sys_shown(p),
		      kbi_sys_shown(caller));
}

static uint64_t load_fill_word(const unsigned char *c)
{
	uint64_t word;

	memcpy(&word, c, sizeof word);
	return word;
}

/* Returns a multiple of STEP: the bytes from c on, at most n, that are known to be `fill`. */
static size_t skip_filled(const unsigned char *c, size_t n, unsigned char fill)
{
	enum { STEP = 4 * sizeof(uint64_t) };
	const uint64_t words = fill * UINT64_C(0x0101010101010101);
	size_t i = 0;

	while (i + STEP <= n &&
	       !((load_fill_word(c + i) ^ words) | (load_fill_word(c + i + 8) ^ words) |
		 (load_fill_word(c + i + 16) ^ words) | (load_fill_word(c + i + 24) ^ words)))
		i += STEP;
	return i;
}

/* Returns the offset of the first byte that is not `fill`; n: all bytes are. */
static size_t find_changed_byte(const unsigned char *c, size_t n, unsigned char fill)
{
	size_t i = skip_filled(c, n, fill);

	while (i < n && c[i] == fill)
		i++;
	return i;
}

/* Returns the length that the program asked for; aborts if the bytes behind the block were written
 * to. */
static size_t check_seal(const void *p, const struct block *b, const void *caller)
{
	uint64_t word = *seal_of(p, b->size);
	size_t pad = word & (((uint64_t)1 << PAD_BITS) - 1), n = b->size - SEAL - pad;

	if (pad > b->size - SEAL || word != make_seal(p, pad) ||
	    find_changed_byte((const unsigned char *)p + n, pad, PATTERN) != pad)
		abort_with_block("overflow of a block", p, b, caller);
	return n;
}

static size_t filled_bytes(const struct block *b)
{
	return b->size < SCRUB ? b->size : SCRUB;
}

/* Aborts if a freed block was written to. */
static void check_fill(const void *p, const struct block *b, const void *freed_by,
		       const void *caller)
{
	size_t n = filled_bytes(b), at = find_changed_byte(p, n, FREED);

	if (at == n)
		return;
	if (freed_by)
		kbi_sys_fatal("heap: write to a freed block: block %p, size class %zu, "
			      "first changed byte at offset %zu,"
			      " freed from %p, found by a call from %p",
			      kbi_sys_shown(p), b->size, at, kbi_sys_shown(freed_by),
			      kbi_sys_shown(caller));
	kbi_sys_fatal("heap: write to a freed block: block %p, size class %zu, "
		      "first changed byte at offset %zu,"
		      " found by a call from %p",
		      kbi_sys_shown(p), b->size, at, kbi_sys_shown(caller));
}

/* Returns the description of the block that begins at p; aborts if none does. */
static struct block require_block_at(const void *p, const void *caller)
{
	struct block b = describe_block(p);

	if (!b.exact)
		abort_with_block("invalid free", p, &b, caller);
	return b;
}

/* ---- blocks that wait before they go to the heap --------------------------------------------- */

enum {
	WAITING = 1024,               /* blocks that wait at an owner, at most */
	WAITING_BYTES = 256 << 10,    /* their bytes, at most */
	WAITING_WHOLE = 128 << 10,    /* bytes; a longer block waits without most of its pages */
};

/* A queue of freed blocks; used by its owner only. */
struct kbi_waiting {
	uint32_t first, n;
	size_t bytes;
	struct {
		void *block;
		const void *freed_by;
	} of[WAITING];
};

static size_t bytes_waiting(const struct block *b)
{
	return b->size > WAITING_WHOLE ? KBI_UNIT : b->size;
}

static void pass_block_to_heap(struct kbi_owner *o, void *p, const struct block *b)
{
	if (b->tag == KBI_TAG_LARGE)
		kbi_large_give(p);
	else if ((b->tag ^ o->key) < sizeof o->bin)
		kbi_owner_give(o, b->slab->class, p);
	else
		kbi_owner_send(o, b->tag, p);
}

static void release_oldest_freed(struct kbi_owner *o, const void *caller)
{
	struct kbi_waiting *w = o->waiting;
	uint32_t i = w->first;
	void *p = w->of[i].block;
	struct block b = describe_block(p);

	check_fill(p, &b, w->of[i].freed_by, caller);
	kbi_owner_enter(o);
	w->first = (i + 1) % WAITING;
	w->n--;
	w->bytes -= bytes_waiting(&b);
	kbi_owner_leave(o);
	pass_block_to_heap(o, p, &b);
}

/* Returns all pages except the first unit's to the system; they read as zeroes when they are next
 * touched. */
static bool drop_pages(void *p, const struct block *b)
{
	return kbi_sys(SYS_madvise, (char *)p + KBI_UNIT, b->size - KBI_UNIT,
		       kbi_space.shared ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

/* Queues a freed block. Returns false if there is no memory for the queue, or if the block is too
 * long for it and its pages are locked in memory. */
static bool queue_freed_block(struct kbi_owner *o, void *p, const struct block *b,
			      const void *caller)
{
	struct kbi_waiting *w = o->waiting;

	if (!w)
		o->waiting = w = kbi_space_record(sizeof *w);
	if (!w || (b->size > WAITING_WHOLE && !drop_pages(p, b)))
		return false;
	while (w->n == WAITING || (w->n && w->bytes + bytes_waiting(b) > WAITING_BYTES))
		release_oldest_freed(o, caller);
	kbi_owner_enter(o);
	w->of[(w->first + w->n) % WAITING].block = p;
	w->of[(w->first + w->n) % WAITING].freed_by = caller;
	w->n++;
	w->bytes += bytes_waiting(b);
	kbi_owner_leave(o);
	return true;
}

void kbi_hard_flush(const void *caller)
{
	struct kbi_owner *o = kbi_owner_self->behind;

	while (o && o->waiting && o->waiting->n)
		release_oldest_freed(o, caller);
}

/* ---- taking and giving ----------------------------------------------------------------------- */

static void *take_hard_block(struct kbi_owner *o, size_t align, size_t n)
{
	size_t rounded = (n + align - 1) & ~(align - 1);
	bool zero;
	unsigned k;

	if (rounded > KBI_HEAP_SMALL || align > KBI_HEAP_SMALL)
		return kbi_large_take(n, align, &zero);
	for (k = kbi_class_of(rounded); kbi_slab_class[k].size & (align - 1); k++)
		;
	return kbi_owner_take(o, k);
}

void *kbi_hard_take(size_t align, size_t n, const void *caller)
{
	struct kbi_owner *o = kbi_life_mine();
	struct block b;
	void *p;

	if (!o || n > PTRDIFF_MAX - ZONE)
		return NULL;
	p = kbi_unlikely(kbi_guard.every) && kbi_owner_chooses(o) ?
		    kbi_guard_take(align, n, caller) :
		    NULL;
	if (p)
		return p;
	p = take_hard_block(o, align, n + ZONE);
	if (!p)
		return NULL;
	b = describe_block(p);
	if (!set_live(b.slab, b.index, true))
		abort_with_block("the heap is corrupt, a block was given out twice", p, &b, caller);
	if (b.tag != KBI_TAG_LARGE && !set_used(b.slab, b.index))
		check_fill(p, &b, NULL, caller);
	seal_block(p, n, b.size);
	return p;
}

void kbi_hard_give(void *p, const void *caller)
{
	struct kbi_owner *o = kbi_life_mine();
	struct block b;

	if (!p || !o)
		return;
	b = require_block_at(p, caller);
	if (!set_live(b.slab, b.index, false))
		abort_with_block("double free", p, &b, caller);
	check_seal(p, &b, caller);
	memset(p, FREED, filled_bytes(&b));
	if (!queue_freed_block(o, p, &b, caller))
		pass_block_to_heap(o, p, &b);
}

size_t kbi_hard_bytes(const void *p, const void *caller)
{
	struct block b = require_block_at(p, caller);

	if (!is_live(b.slab, b.index))
		abort_with_block("use of a freed block", p, &b, caller);
	return check_seal(p, &b, caller);
}
