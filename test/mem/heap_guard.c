/* mem/heap_guard: a chosen block's overflow and its use after it was freed fault, and are told with the callers; a double
 * free, an invalid free and a write right behind an odd length end the program; a handler of the program's own stays; about
 * as many blocks are chosen as the option says, whatever sizes are taken. */
#include "core/child.h"
#include "mem/heap.h"
#include "mem/heap_guard.h"

enum { EVEN = 96, ODD = 100 };
static char *volatile p;
static volatile char sink;
static char *volatile nowhere = (char *)8;

/* Nearly every block is chosen: not the block with which more of its size are fetched. */
static char *take(size_t n)
{
	for (unsigned i = 0; i < 2; i++)
		if (kbi_guard_has(p = kbi_heap_take_for(n, (void *)0x4321)))
			break;
	CHECK(kbi_guard_has(p));
	CHECK_EQ(kbi_heap_bytes(p, NULL), n);
	memset(p, 1, n);
	return p;
}

static void writes_behind(void *by)
{
	kbi_guard_watch();
	take(EVEN)[EVEN + (uintptr_t)by] = 1;
}

static void writes_before(void *unused)
{
	(void)unused;
	kbi_guard_watch();
	take(EVEN)[-8192] = 1;
}

static void uses_freed(void *later)
{
	kbi_guard_watch();
	take(ODD);
	kbi_heap_give_for(p, (void *)0x1234);
	for (uintptr_t i = 0; i < (uintptr_t)later; i++)
		kbi_heap_give(kbi_heap_take(ODD));
	sink = p[17];
}

static void frees_twice(void *unused)
{
	(void)unused;
	take(ODD);
	kbi_heap_give_for(p, (void *)0x5678);
	kbi_heap_give_for(p, (void *)0x1234);
}

static void frees_inside(void *unused)
{
	(void)unused;
	kbi_heap_give_for(take(ODD) + 16, (void *)0x1234);
}

static void overflows_tail(void *unused)
{
	(void)unused;
	take(ODD)[ODD] = 7;
	kbi_heap_give_for(p, (void *)0x1234);
}

static void own(int sig)
{
	(void)sig;
	_exit(9);
}

static void has_handler(void *unused)
{
	(void)unused;
	signal(SIGSEGV, own);
	kbi_guard_watch();
	take(EVEN)[EVEN] = 1;
}

/* A signal that was sent, and a fault elsewhere, end it as without a handler. */
static void is_sent(void *unused)
{
	(void)unused;
	kbi_guard_watch();
	take(EVEN);
	raise(SIGSEGV);
}

static void faults_elsewhere(void *unused)
{
	(void)unused;
	kbi_guard_watch();
	take(EVEN);
	*nowhere = 1;
}

static void resizes(void *unused)
{
	char *q;

	(void)unused;
	take(ODD);
	q = kbi_heap_resize(p, 5000, NULL);
	for (unsigned i = 0; i < ODD; i++)
		CHECK_EQ(q[i], 1);
	memset(q, 2, 5000);
	q = kbi_heap_resize(q, 4000, NULL);
	CHECK_EQ(q[3999], 2);
	kbi_heap_give(q);
	for (size_t align = 32; align <= 65536; align *= 2) {
		q = kbi_heap_take_aligned(align, ODD, NULL);
		CHECK_EQ((uintptr_t)q & (align - 1), 0);
		memset(q, 3, ODD);
		kbi_heap_give(q);
	}
	q = kbi_heap_take_zeroed(3000, NULL);
	for (unsigned i = 0; i < 3000; i++)
		CHECK_EQ(q[i], 0);
	kbi_heap_give(q);
	for (unsigned i = 0; i < 1000; i++) /* more than there is room for */
		CHECK(kbi_heap_take(ODD) != NULL);
	kbi_heap_trim(0);
}

enum { EVERY = 100, STEPS = 200000, SHELF = 64 };

static unsigned count_chosen(size_t most)
{
	uint64_t random = test_seed();
	static char *shelf[SHELF];
	unsigned chosen = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		uint64_t r = test_rand(&random);
		size_t n = 1 + (r >> 20) % most;
		char *q = kbi_heap_take(n), **at = &shelf[r % SHELF];

		chosen += kbi_guard_has(q);
		memset(q, 1, n);
		kbi_heap_give(*at);
		*at = q;
	}
	return chosen;
}

static void is_rare(void *most)
{
	unsigned n = count_chosen((uintptr_t)most);

	printf("%u of %u\n", n, STEPS);
	CHECK(n > STEPS / EVERY / 2 && n < STEPS / EVERY * 2);
}

/* ---- */

static struct child c;

static void ends(void (*fn)(void *), void *arg, int sig, const char *says)
{
	child_start(&c, fn, arg);
	child_end(&c, 20000);
	child_killed(&c, sig);
	child_said(&c, says);
}

/* Told by our handler, which stays away where the program has a handler: a sanitizer's runtime has its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TOLD = false };
#else
enum { TOLD = true };
#endif

static void faults(void)
{
	ends(writes_behind, NULL, SIGSEGV, "0 bytes behind the end of the block");
	child_said(&c, "of 96 bytes, taken from 0x4321 by thread");
	ends(writes_behind, (void *)5000, SIGSEGV, "5000 bytes behind the end of the block");
	ends(writes_before, NULL, SIGSEGV, "8192 bytes before the block");
	ends(uses_freed, NULL, SIGSEGV, "use of a freed block: address");
	child_said(&c, "at offset 17 of the block");
	child_said(&c, "freed from 0x1234 by thread");
	ends(uses_freed, (void *)100, SIGSEGV, "freed from 0x1234 by thread");
	ends(is_sent, NULL, SIGSEGV, "");
	ends(faults_elsewhere, NULL, SIGSEGV, "");
}

static void checks(void)
{
	ends(frees_twice, NULL, SIGABRT, "double free");
	child_said(&c, "freed from 0x5678");
	ends(frees_inside, NULL, SIGABRT, "invalid free");
	ends(overflows_tail, NULL, SIGABRT, "overflow of a block");
	child_run(&c, has_handler, NULL);
	child_exited(&c, 9);
	child_run(&c, resizes, NULL);
	child_exited(&c, 0);
}

int main(void)
{
	static const char *const heaps[] = { "plain", "hardened" };

	for (unsigned i = 0; i < kbi_countof(heaps); i++) {
		CHECK_EQ(setenv("KOCHAB_HEAP", heaps[i], 1), 0);
		CHECK_EQ(setenv("KOCHAB_HEAP_GUARD", "1", 1), 0);
		if (TOLD)
			faults();
		checks();
		CHECK_EQ(setenv("KOCHAB_HEAP_GUARD", "100", 1), 0);
		for (uintptr_t most = 100; most <= 10000; most *= 10) {
			child_run(&c, is_rare, (void *)most);
			child_exited(&c, 0);
		}
	}
	return 0;
}
