/* mem/heap_hard.c - hardened mode. Contract in heap_hard.h.
 *
 *   | n bytes of the program's | pattern, 0 to some bytes | seal, 8 bytes |
 *
 * The seal is the last word of the block as the heap knows it: n times an odd number, plus the address, under a secret.
 * With any of its bits changed it tells a length that no block has. Freed blocks are filled with another pattern. */
#include "mem/heap_hard.h"

#include <string.h>
#include <sys/random.h>

#include "mem/heap_large.h"
#include "mem/heap_owner.h"
#include "os/sys.h"

enum { SEAL = sizeof(uint64_t), PATTERN = 0xa5, FREED = 0xdd, SCRUB = 4096 };

#define ODD 0x9e3779b97f4a7c15u
#define ODD_INVERSE 0xf1de83e19937733du /* their product is 1 modulo 2^64 */

static uint64_t secret; /* constant */

void kbi_hard_setup(void)
{
	uint64_t r = kbi_sys_now();

	kbi_sys(SYS_getrandom, &r, sizeof r, GRND_NONBLOCK);
	secret = r;
	kbi_owner_hardened = true;
}

/* ---- which blocks the program has -------------------------------------------------------------------------- */

static a64 *live_word(const struct kbi_slab *s, uint32_t i)
{
	uint64_t *words = kbi_space.live + (size_t)(s - kbi_space.slab) * KBI_SLAB_WORDS;

	return (a64 *)&words[i / 64];
}

static bool is_live(const struct kbi_slab *s, uint32_t i)
{
	return a_load_rlx(live_word(s, i)) & (uint64_t)1 << i % 64;
}

/* The block's bit becomes `live`; whether it was the contrary. Other threads change the word's other bits. */
static bool set_live(const struct kbi_slab *s, uint32_t i, bool live)
{
	uint64_t bit = (uint64_t)1 << i % 64;

	if (live)
		return !(a_or_rlx(live_word(s, i), bit) & bit);
	return a_and_rlx(live_word(s, i), ~bit) & bit;
}

/* ---- blocks as the heap knows them --------------------------------------------------------------------------- */

struct block {
	struct kbi_slab *slab;
	uint32_t index, tag;
	size_t size;
	bool exact; /* a block begins there */
};

static struct block find(const void *p)
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

static void seal(void *p, size_t n, size_t size)
{
	memset((char *)p + n, PATTERN, size - SEAL - n);
	*seal_of(p, size) = (n * ODD + (uintptr_t)p) ^ secret;
}

static KBI_NORETURN void complain(const char *what, const void *p, const struct block *b, const void *caller)
{
	if (b->size)
		kbi_sys_fatal("heap: %s: block %p, size class %zu, called from %p", what, p, b->size, caller);
	kbi_sys_fatal("heap: %s: address %p is not the heap's, called from %p", what, p, caller);
}

/* The length that was asked for; aborts if what follows the block was written to. */
static size_t check(const void *p, const struct block *b, const void *caller)
{
	uint64_t n = ((*seal_of(p, b->size) ^ secret) - (uintptr_t)p) * ODD_INVERSE;

	if (n > b->size - SEAL)
		complain("overflow of a block", p, b, caller);
	for (const unsigned char *c = (const unsigned char *)p + n; c < (unsigned char *)seal_of(p, b->size); c++)
		if (*c != PATTERN)
			complain("overflow of a block", p, b, caller);
	return n;
}

/* Of a block that the program has. */
static struct block find_live(const void *p, const void *caller)
{
	struct block b = find(p);

	if (!b.exact)
		complain("invalid free", p, &b, caller);
	return b;
}

/* ---- taking and giving --------------------------------------------------------------------------------------- */

static void *take(struct kbi_owner *o, size_t align, size_t n)
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

	if (!o || n > PTRDIFF_MAX - SEAL)
		return NULL;
	p = take(o, align, n + SEAL);
	if (!p)
		return NULL;
	b = find(p);
	if (!set_live(b.slab, b.index, true))
		complain("the heap is corrupt, a block was given out twice", p, &b, caller);
	seal(p, n, b.size);
	return p;
}

void kbi_hard_give(void *p, const void *caller)
{
	struct kbi_owner *o = kbi_life_mine();
	struct block b;

	if (!p || !o)
		return;
	b = find_live(p, caller);
	if (!set_live(b.slab, b.index, false))
		complain("double free", p, &b, caller);
	check(p, &b, caller);
	memset(p, FREED, b.size < SCRUB ? b.size : SCRUB);
	if (b.tag == KBI_TAG_LARGE)
		kbi_large_give(p);
	else if ((b.tag ^ o->key) < sizeof o->bin)
		kbi_owner_give(o, b.slab->class, p);
	else
		kbi_owner_send(o, b.tag, p);
}

size_t kbi_hard_bytes(const void *p, const void *caller)
{
	struct block b = find_live(p, caller);

	if (!is_live(b.slab, b.index))
		complain("use of a freed block", p, &b, caller);
	return check(p, &b, caller);
}
