/* Barriers that are made of words: the last thread wakes the rest and goes on computing, for zero,
 * some or many microseconds, so that waiters are woken where they wait, on virtual processors that
 * poll, and on sleeping ones. Some threads wait with a deadline that is near. No wake-up is lost,
 * no thread passes twice. */
#include <errno.h>
#include <limits.h>

#include "sync/park.h"
#include "threads.h"

enum { THREADS = 7, ROUNDS = 600, KINDS = 4 };

static uint32_t phase;
static int arrived, passed[ROUNDS];

static void compute(uint64_t ns)
{
	uint64_t until = kb_now() + ns;

	while (ns && kb_now() < until)
		;
}

/* Waits until the phase is no longer `now`. */
static void wait_for_others(uint32_t now, bool hurried)
{
	while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == now) {
		uint64_t until = hurried ? kb_now() + 20000 : KBI_FOREVER;
		int e = kbi_park_wait(&phase, now, KBI_PARK_ANY, until);

		CHECK(e == 0 || e == EAGAIN || (hurried && e == ETIMEDOUT));
	}
}

static void *member(void *unused)
{
	static const uint64_t steps[KINDS] = { 0, 3000, 100000, 0 };
	static int next;
	bool hurried = test_add(&next, 1) % 3 == 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		test_add(&passed[i], 1);
		if (test_add(&arrived, 1) == THREADS) {
			CHECK_EQ(test_get(&passed[i]), THREADS);
			if (i + 1 < ROUNDS)
				CHECK_EQ(test_get(&passed[i + 1]), 0);
			test_put(&arrived, 0);
			__atomic_store_n(&phase, i + 1, __ATOMIC_RELEASE);
			kbi_park_wake(&phase, INT_MAX, KBI_PARK_ANY);
		} else {
			wait_for_others(i, hurried);
		}
		compute(steps[i / 50 % KINDS]);
	}
	return unused;
}

static void all(void)
{
	phase = 0;
	arrived = 0;
	for (int i = 0; i < ROUNDS; i++)
		passed[i] = 0;
	workers_run(THREADS, member, NULL);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ(passed[i], THREADS);
}

int main(void)
{
	test_each(all);
	return 0;
}
