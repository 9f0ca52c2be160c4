/* The work-stealing array: a claimed item is taken by no second taker; late takers fail; the last
 * item put in can be taken back; the array wraps, and refuses items when full. First step by step,
 * then the owner against two thieves that dawdle between reading and claiming. */
#include <pthread.h>
#include <string.h>

#include "base/deque.h"
#include "test.h"

enum { ITEMS = 4096, HALF_MAX = 64 };

static struct kbi_deque d;
static struct item {
	a32 taken;
} item[ITEMS];
static a32 stop;
static unsigned seconds = 2;

static void reset(uint32_t index)
{
	memset(&d, 0, sizeof(d));
	a_store_rlx(&d.top, index);
	a_store_rlx(&d.bottom, index);
}

static void steps(uint32_t start)
{
	uint64_t top, late;

	reset(start);
	CHECK(kbi_deque_take(&d) == NULL);
	CHECK(!kbi_deque_take_back(&d, &item[0]));
	CHECK(kbi_deque_put(&d, &item[0]));
	/* the owner takes the item back between a thief's read and its claim */
	CHECK_EQ(kbi_deque_look(&d, &late), 1);
	CHECK(kbi_deque_peek(&d, late, 0) == &item[0]);
	CHECK(kbi_deque_take_back(&d, &item[0]));
	CHECK(!kbi_deque_claim(&d, late, 1));
	CHECK_EQ(kbi_deque_count(&d), 0);
	CHECK(!kbi_deque_take_back(&d, &item[0]));
	/* here the thief is faster */
	CHECK(kbi_deque_put(&d, &item[1]));
	CHECK_EQ(kbi_deque_look(&d, &top), 1);
	CHECK(kbi_deque_claim(&d, top, 1));
	CHECK(!kbi_deque_take_back(&d, &item[1]));
	/* oldest first; only the last item can be taken back; half of the items in a single claim */
	for (unsigned i = 0; i < 10; i++)
		CHECK(kbi_deque_put(&d, &item[i]));
	CHECK(!kbi_deque_take_back(&d, &item[8]));
	CHECK(kbi_deque_take(&d) == &item[0]);
	CHECK_EQ(kbi_deque_look(&d, &late), 9);
	CHECK_EQ(kbi_deque_look(&d, &top), 9);
	CHECK(kbi_deque_claim(&d, top, 4));
	CHECK(!kbi_deque_claim(&d, late, 1));
	CHECK(kbi_deque_take(&d) == &item[5]);
	CHECK(kbi_deque_take_back(&d, &item[9]));
	CHECK_EQ(kbi_deque_count(&d), 3);
}

static void fill(uint32_t start)
{
	reset(start);
	for (unsigned i = 0; i < KBI_DEQUE_SLOTS; i++)
		CHECK(kbi_deque_put(&d, &item[i % ITEMS]));
	CHECK(!kbi_deque_put(&d, &item[0]));
	for (unsigned i = 0; i < KBI_DEQUE_SLOTS; i++)
		CHECK(kbi_deque_take(&d) == &item[i % ITEMS]);
	CHECK(kbi_deque_take(&d) == NULL);
}

/* The items are ours until we put them in again. */
static void got(struct item *it)
{
	CHECK_EQ(a_xchg_rlx(&it->taken, 1), 0);
}

static void dawdle(uint64_t *rand)
{
	for (unsigned n = (unsigned)(test_rand(rand) >> 56); n > 0; n--)
		kbi_compiler_barrier();
}

static void *thief(void *arg)
{
	uint64_t rand = test_seed() * 4 + (uint64_t)(uintptr_t)arg, top;
	struct item *mine[HALF_MAX];

	while (!a_load_acq(&stop)) {
		uint32_t n = (kbi_deque_look(&d, &top) + 1) / 2;

		n = n < HALF_MAX ? n : HALF_MAX;
		for (uint32_t i = 0; i < n; i++)
			mine[i] = kbi_deque_peek(&d, top, i);
		dawdle(&rand);
		if (!n || !kbi_deque_claim(&d, top, n))
			continue;
		for (uint32_t i = 0; i < n; i++)
			got(mine[i]);
		/* release: pairs with the owner's acquire; the owner may put the items in again */
		for (uint32_t i = 0; i < n; i++)
			a_store_rel(&mine[i]->taken, 2);
	}
	return NULL;
}

static void race(void)
{
	uint64_t rand = test_seed(), end = test_now_ns() + seconds * 1000000000ull, ops = 0;
	pthread_t id[2];

	reset(UINT32_MAX - 5000);
	for (unsigned i = 0; i < ITEMS; i++)
		a_store_rlx(&item[i].taken, 2);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&id[i], NULL, thief, (void *)(i + 1)), 0);
	for (unsigned i = 0; ops % 1024 || test_now_ns() < end; ops++, i = (i + 1) % ITEMS) {
		struct item *it;

		if (a_load_acq(&item[i].taken) == 2) {
			a_store_rlx(&item[i].taken, 0);
			CHECK(kbi_deque_put(&d, &item[i]));
			if (test_rand(&rand) >> 62 == 0) {
				dawdle(&rand);
				if (kbi_deque_take_back(&d, &item[i])) {
					got(&item[i]);
					a_store_rlx(&item[i].taken, 2);
				}
			}
		}
		if (test_rand(&rand) >> 61 == 0 && (it = kbi_deque_take(&d))) {
			got(it);
			a_store_rlx(&it->taken, 2);
		}
	}
	while (kbi_deque_count(&d))
		continue;
	a_store_rel(&stop, 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(id[i], NULL);
	for (unsigned i = 0; i < ITEMS; i++)
		CHECK_EQ(a_load_rlx(&item[i].taken), 2);
	printf("%llu steps of the owner\n", (unsigned long long)ops);
}

int main(void)
{
	static const uint32_t starts[] = { 0, 1, UINT32_MAX - 4, UINT32_MAX - KBI_DEQUE_SLOTS / 2 };

	for (unsigned i = 0; i < 4; i++) {
		steps(starts[i]);
		fill(starts[i]);
	}
	race();
	return 0;
}
