/* The textbook futex mutex over the parking lot, with time-outs and sleepers that are
 * moved from word to word. */
#include <errno.h>

#include "sync/park.h"
#include "threads.h"

enum { THREADS = 8, ROUNDS = 3000 };

static uint32_t word; /* 0 free, 1 locked, 2 locked and a thread may sleep */
static uint32_t side; /* never changes */
static long counter;
static int stop;

static void lock(uint64_t *rnd)
{
	uint32_t old = 0;

	if (__atomic_compare_exchange_n(&word, &old, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE) != 0) {
		uint64_t r = test_rand(rnd);
		uint64_t at = r % 2 ? KBI_FOREVER : kb_now() + r / 8 % 20000;
		int rc = kbi_park_wait(&word, 2, KBI_PARK_ANY, at);

		CHECK(rc == 0 || rc == EAGAIN || rc == ETIMEDOUT);
	}
}

static void unlock(void)
{
	if (__atomic_exchange_n(&word, 0, __ATOMIC_RELEASE) == 2)
		kbi_park_wake(&word, 1, KBI_PARK_ANY);
}

static void *work(void *arg)
{
	uint64_t rnd = test_stream();

	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		lock(&rnd);
		counter++;
		if (test_rand(&rnd) % 16 == 0)
			kb_yield();
		unlock();
	}
	return NULL;
}

/* Moves sleepers away and wakes them at the second word: they look at the first word again. */
static void *move(void *arg)
{
	(void)arg;
	while (!test_get(&stop)) {
		unsigned moved;

		CHECK_EQ(kbi_park_requeue(&word, 0, &side, 2, NULL, NULL, &moved), 0);
		kb_yield();
		kbi_park_wake(&side, UINT32_MAX, KBI_PARK_ANY);
		kb_yield();
	}
	return NULL;
}

static void body(void)
{
	struct worker mover;

	counter = 0;
	test_put(&stop, 0);
	worker_start(&mover, move, NULL);
	workers_run(THREADS, work, NULL);
	test_put(&stop, 1);
	worker_join(&mover);
	CHECK_EQ(counter, (long)THREADS * ROUNDS);
	CHECK_EQ(kbi_park_wake(&word, 99, KBI_PARK_ANY) + kbi_park_wake(&side, 99, KBI_PARK_ANY), 0);
}

int main(void)
{
	test_seed();
	test_both(body);
	return 0;
}
