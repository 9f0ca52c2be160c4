/* mem/heap_owner: kernel threads and light threads exchange blocks, whose contents are checked; owners end and are taken
 * over; in the end no block is missing and none is left. */
#include <pthread.h>
#include <string.h>

#include <kochab/kochab.h>

#include "base/san.h"
#include "mem/heap.h"
#include "mem/heap_stats.h"
#include "test.h"

enum { KERNEL = 4, LIGHT = 16, SHELF = 256, STEPS = KBI_SAN ? 4000 : 30000, ROUNDS = 3 };

static aptr shelf[SHELF];

static void write_block(unsigned char *p, size_t n)
{
	memcpy(p, &n, sizeof n);
	memset(p + sizeof n, (int)(n * 7 + (uintptr_t)p / 16), n - sizeof n);
}

static void check_block(const unsigned char *p)
{
	unsigned char c;
	size_t n;

	memcpy(&n, p, sizeof n);
	c = (unsigned char)(n * 7 + (uintptr_t)p / 16);
	for (size_t i = sizeof n; i < n; i++)
		CHECK_EQ(p[i], c);
}

static void step(uint64_t *random)
{
	uint64_t r = test_rand(random);
	size_t n = 8 + (r >> 16) % (r % 200 == 0 ? 100000 : r % 10 == 0 ? 3000 : 300);
	unsigned char *p = kbi_heap_take(n);

	CHECK(p != NULL);
	write_block(p, n);
	p = a_xchg_acqrel(&shelf[r % SHELF], p);
	if (!p)
		return;
	check_block(p);
	kbi_heap_give(p);
}

static void *kernel(void *arg)
{
	uint64_t random = test_seed() + (uintptr_t)arg;

	for (unsigned i = 0; i < STEPS; i++)
		step(&random);
	kbi_life_end();
	return NULL;
}

static void *light(void *arg)
{
	uint64_t random = test_seed() * 3 + (uintptr_t)arg;

	for (unsigned i = 0; i < STEPS / 4; i++) {
		step(&random);
		if (i % 16 == 0)
			kb_yield();
	}
	return NULL;
}

static void round_of_all(uintptr_t round)
{
	pthread_t k[KERNEL];
	kb_thread_t l[LIGHT];

	for (uintptr_t i = 0; i < KERNEL; i++)
		CHECK_EQ(pthread_create(&k[i], NULL, kernel, (void *)(round * 100 + i + 1)), 0);
	for (uintptr_t i = 0; i < LIGHT; i++)
		CHECK_EQ(kb_thread_create(&l[i], NULL, light, (void *)(round * 100 + i + 50)), 0);
	for (unsigned i = 0; i < LIGHT; i++)
		CHECK_EQ(kb_thread_join(l[i], NULL), 0);
	for (unsigned i = 0; i < KERNEL; i++)
		CHECK_EQ(pthread_join(k[i], NULL), 0);
}

int main(void)
{
	struct kbi_stats s;

	CHECK_EQ(setenv("KOCHAB_VPS", "2", 1), 0);
	test_seed(); /* settled before threads ask for it */
	for (uintptr_t i = 0; i < ROUNDS; i++)
		round_of_all(i);
	for (unsigned i = 0; i < SHELF; i++) {
		void *p = a_xchg_acqrel(&shelf[i], NULL);

		if (p)
			check_block(p);
		kbi_heap_give(p);
	}
	kbi_heap_trim(0);
	kbi_stats_take(&s);
	/* kernel threads' owners serve again; two VPs and main have theirs */
	CHECK(s.owners <= KERNEL + 3);
	CHECK_EQ(s.large, 0);
	CHECK(s.count.posted >= s.count.received);
	CHECK_EQ(s.space.dirty, 0);
	return 0;
}
