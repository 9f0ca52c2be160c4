/* mem/heap_hard: a double free, a free of what is no block, a use of what is freed, and each overflow of a block end the
 * program with a message that names class and caller. */
#include "core/child.h"
#include "mem/heap.h"

enum { BYTES = 100 };
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

static void dies(void (*fn)(void *), void *arg, const char *says)
{
	static struct child c;

	child_start(&c, fn, arg);
	child_end(&c, 20000);
	child_killed(&c, SIGABRT);
	child_said(&c, says);
	child_said(&c, "0x1234");
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
	static struct child c;

	CHECK_EQ(setenv("KOCHAB_HEAP", "hardened", 1), 0);
	child_start(&c, works, NULL);
	child_end(&c, 20000);
	child_exited(&c, 0);
	dies(twice, NULL, "double free: block");
	dies(twice, (void *)1, "size class 112");
	dies(inside, (void *)16, "invalid free");
	dies(inside, (void *)1, "size class 112");
	dies(resized, (void *)8, "invalid free: block");
	dies(resized, NULL, "use of a freed block: block");
	dies(measured, (void *)BYTES, "size class 112");
	dies(elsewhere, &c, "not the heap's");
	for (uintptr_t by = 0; by < 12; by++)
		dies(beyond, (void *)by, "overflow of a block");
	dies(large, NULL, "overflow of a block");
	return 0;
}
