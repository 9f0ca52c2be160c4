/* mem/heap_hard: a double free, also after other blocks were taken, a free of a non-block, a use of a freed block, a
 * write to it, and each overflow of a block end the program with a message that names class and caller. A seal that the
 * program reads is of no use for a block that is longer, or another. */
#include "core/child.h"
#include "mem/heap.h"

enum { BYTES = 100, FILLED = 4096 };
static char *volatile p;

static void twice(void *other)
{
	p = kbi_heap_take(BYTES);
	kbi_heap_give(p);
	if (other)
		kbi_heap_take(BYTES / 2);
	kbi_heap_give_for(p, (void *)0x1234);
}

static void inside(void *by)
{
	p = kbi_heap_take(BYTES);
	kbi_heap_give_for(p + (uintptr_t)by, (void *)0x1234);
}

static void resized(void *by)
{
	p = kbi_heap_take(BYTES);
	if (!by)
		kbi_heap_give(p);
	kbi_heap_resize(p + (uintptr_t)by, BYTES / 2, (void *)0x1234);
}

static void measured(void *n)
{
	p = kbi_heap_take((uintptr_t)n);
	kbi_heap_give(p);
	kbi_heap_bytes(p, (void *)0x1234);
}

static void elsewhere(void *what)
{
	kbi_heap_take(BYTES);
	kbi_heap_give_for(what, (void *)0x1234);
}

static void beyond(void *by)
{
	p = kbi_heap_take(BYTES);
	p[BYTES + (uintptr_t)by] ^= 1;
	kbi_heap_give_for(p, (void *)0x1234);
}

static void large(void *by)
{
	p = kbi_heap_take(1 << 20);
	p[(1 << 20) + (uintptr_t)by] ^= 1;
	kbi_heap_give_for(p, (void *)0x1234);
}

/* ---- overflows, to 64 bytes behind the end ------------------------------------------------------------------------- */

struct overflow {
	size_t n, from, bytes;
};

static void overflows(void *arg)
{
	const struct overflow *o = arg;
	char *next;

	p = kbi_heap_take(o->n);
	next = kbi_heap_take(o->n); /* the hit bytes may be another block's */
	memset(next, 1, o->n);
	for (size_t i = 0; i < o->bytes; i++)
		p[o->n + o->from + i] ^= 1;
	kbi_heap_give_for(p, (void *)0x1234);
}

/* ---- freed blocks ------------------------------------------------------------------------------------------------- */

static void takes_others(size_t n, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		CHECK(kbi_heap_take(n) != NULL);
}

static void twice_later(void *n)
{
	p = kbi_heap_take((uintptr_t)n);
	kbi_heap_give(p);
	takes_others((uintptr_t)n, 200);
	kbi_heap_give_for(p, (void *)0x1234);
}

/* Further blocks follow, until it leaves the queue. */
static void writes_freed(void *n)
{
	p = kbi_heap_take((uintptr_t)n);
	kbi_heap_give_for(p, (void *)0x1234);
	p[(uintptr_t)n / 2 % FILLED] ^= 1;
	for (unsigned i = 0; i < 5000; i++)
		kbi_heap_give_for(kbi_heap_take((uintptr_t)n), (void *)0x5678);
}

/* It has left the queue before; another block holds its slab. */
static void writes_free(void *n)
{
	CHECK(kbi_heap_take((uintptr_t)n) != NULL);
	p = kbi_heap_take((uintptr_t)n);
	kbi_heap_give(p);
	kbi_heap_trim(0);
	p[33] = 1;
	for (unsigned i = 0; i < 5000; i++)
		kbi_heap_take_for((uintptr_t)n, (void *)0x1234);
}

/* A program knows the address of its block and reads the seal, if that were a sum under a secret. */
static void forges(void *unused)
{
	const uint64_t odd = 0x9e3779b97f4a7c15u;
	char *a = kbi_heap_take(BYTES), *b = kbi_heap_take(BYTES);
	size_t size = kbi_slab_class[kbi_space_slab(a)->class].size;
	uint64_t *of_a = (uint64_t *)(a + size) - 1, *of_b = (uint64_t *)(b + size) - 1;

	(void)unused;
	*of_b = (*of_a ^ (BYTES * odd + (uintptr_t)a)) ^ ((BYTES + 1) * odd + (uintptr_t)b);
	b[BYTES] = 'x';
	kbi_heap_give_for(b, (void *)0x1234);
}

/* Another block's seal of the same length. */
static void copies_seal(void *unused)
{
	char *a = kbi_heap_take(BYTES), *b = kbi_heap_take(BYTES);
	size_t size = kbi_slab_class[kbi_space_slab(a)->class].size;

	(void)unused;
	memcpy(b + BYTES, a + BYTES, size - BYTES);
	kbi_heap_give_for(b, (void *)0x1234);
}

static void dies(void (*fn)(void *), void *arg, const char *says)
{
	static struct child c;

	child_start(&c, fn, arg);
	child_end(&c, 20000);
	child_killed(&c, SIGABRT);
	child_said(&c, says);
	child_said(&c, "0x1234");
}

static void dies_of_overflows(size_t n)
{
	static const size_t from[] = { 0, 1, 7, 8, 15, 16, 31, 32, 47, 63 };

	for (unsigned i = 0; i < kbi_countof(from); i++) {
		dies(overflows, &(struct overflow){ n, from[i], 1 }, "overflow of a block");
		dies(overflows, &(struct overflow){ n, 0, from[i] + 1 }, "overflow of a block");
	}
}

static void works(void *unused)
{
	(void)unused;
	for (size_t n = 0; n < 200000; n += n / 7 + 1) {
		p = kbi_heap_take(n);
		memset(p, 1, n);
		CHECK_EQ(kbi_heap_bytes(p, NULL), n);
		p = kbi_heap_resize(p, n + 10, NULL);
		memset(p, 2, n + 10);
		kbi_heap_give(p);
	}
}

int main(void)
{
	/* some fill a class's block or a unit when they have a seal, or a seal and 56 bytes */
	static const size_t sizes[] = { 24, 100, 184, 1000, 5000, 40000, 65472, 65536 - 8 };
	static struct child c;

	CHECK_EQ(setenv("KOCHAB_HEAP", "hardened", 1), 0);
	child_start(&c, works, NULL);
	child_end(&c, 20000);
	child_exited(&c, 0);
	dies(twice, NULL, "double free: block");
	dies(twice, (void *)1, "size class 176");
	dies(inside, (void *)16, "invalid free");
	dies(inside, (void *)1, "size class 176");
	dies(resized, (void *)8, "invalid free: block");
	dies(resized, NULL, "use of a freed block: block");
	dies(measured, (void *)BYTES, "size class 176");
	dies(elsewhere, &c, "not the heap's");
	for (uintptr_t by = 0; by < 12; by++)
		dies(beyond, (void *)by, "overflow of a block");
	dies(large, NULL, "overflow of a block");
	for (unsigned i = 0; i < kbi_countof(sizes); i++) {
		dies_of_overflows(sizes[i]);
		dies(twice_later, (void *)sizes[i], "double free: block");
		dies(writes_freed, (void *)sizes[i], i == 0 ? "offset 12, freed from" : "write to a freed block");
	}
	dies(writes_free, (void *)BYTES, "first changed byte at offset 33");
	dies(writes_free, (void *)5000, "first changed byte at offset 33");
	dies(forges, NULL, "overflow of a block");
	dies(copies_seal, NULL, "overflow of a block");
	return 0;
}
